import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { beforeAll, describe, expect, it } from "vitest"

// Runs `pnpm demo:rules` on the built packages.

const ROOT = fileURLToPath(new URL("..", import.meta.url))

interface Ended {
  readonly code: number | null
  readonly output: string
  readonly errors: string
}

const LAUNCHER = ["--import", "tsx", "test/servers/with-servers.ts", process.execPath]

/** Runs the example. By default, starts the servers that it needs. */
function run(nodeOptions = "", launcher: readonly string[] = LAUNCHER): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const args = [...launcher, "--import", "tsx"]
    const { REDIS_URL: _redis, DYNAMODB_ENDPOINT: _dynamoDB, ...env } = process.env
    const child = spawn(process.execPath, [...args, "examples/src/registered-rules/main.ts"], {
      cwd: ROOT,
      env: { ...env, TSX_TSCONFIG_PATH: `${ROOT}examples/tsconfig.json`, NODE_OPTIONS: nodeOptions },
      stdio: ["ignore", "pipe", "pipe"],
    })
    let output = ""
    let errors = ""
    child.stdout.on("data", (text: Buffer) => {
      output += text
    })
    child.stderr.on("data", (text: Buffer) => {
      errors += text
    })
    child.once("error", reject).once("close", (code) => resolve({ code, output, errors }))
  })
}

/** A server that never refuses a request of the example's clients. */
const GENEROUS = `const real = globalThis.fetch
globalThis.fetch = async (...given) => {
  const answer = await real(...given)
  return answer.status === 429 ? new Response("{}") : answer
}`

describe("the example with registered rules", () => {
  let sound: Ended
  let generous: Ended

  beforeAll(async () => {
    const preload = `--import=data:text/javascript,${encodeURIComponent(GENEROUS)}`
    ;[sound, generous] = await Promise.all([run(), run(preload)])
  })

  it("exits with code 0 without a terminal, and prints no warning", () => {
    expect(sound.errors).toBe("")
    expect(sound.code).toBe(0)
    expect(sound.output).toMatch(
      /^✓ Every limit admitted exactly what it says, before and after each change\.$/m,
    )
    expect(sound.output).not.toContain("\u001b")
  })

  it("enforces the registered rules after each change, and keeps the counts", () => {
    const rows = sound.output.match(/^[✓✗] \w+ +\d.*$/gm)?.map((row) => row.replace(/ +/g, " "))
    expect(rows).toEqual([
      "✓ ann 7 5 2 per-user retry-with-exponential-backoff",
      "✓ bob 5 5 0",
      "✓ cleo 1 0 1 daily exhausted-daily-limit",
      "✓ ann 5 3 2 per-user retry-with-exponential-backoff",
      "✓ bob 1 1 0",
      "✓ cleo 3 1 2 daily exhausted-daily-limit",
    ])
    expect(sound.output).toMatch(/^Registered version 1: .*\n/m)
    expect(sound.output).toMatch(/^Changed through the registry, version 2: /m)
    expect(sound.output).toMatch(/^ {2}checkout-\w+: registered, version 3 \(was 2\)$/m)
    expect(sound.output).toMatch(/^ {8}limit: 20 -> 15$/m)
  })

  it("exits with code 1 and shows the expected result if a limit is not enforced", () => {
    expect(generous.code).toBe(1)
    expect(generous.output).toMatch(/^✗ ann +7 +7 +0 +wanted 5 per-user$/m)
    expect(generous.output).toMatch(/^✗ 4 of 6 rounds did not go as the rules require\.$/m)
  })

  it("lists the settings that it needs when it is started directly", async () => {
    expect(await run("", [])).toEqual({
      code: 2,
      output: "",
      errors: "Set REDIS_URL and DYNAMODB_ENDPOINT, or run `pnpm demo:rules`, which starts both.\n",
    })
  })
})
