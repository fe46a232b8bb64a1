import { spawn, spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { beforeAll, describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../../..", import.meta.url))
/** The demo runs on the built packages, like the command. */
const env = {
  ...process.env,
  TSX_TSCONFIG_PATH: fileURLToPath(new URL("../../tsconfig.json", import.meta.url)),
}

interface Ended {
  readonly code: number | null
  readonly output: string
  readonly errors: string
  /** The page, its data and its updates, requested at the beginning. The updates stay open. */
  readonly page: readonly Response[]
}

const PAGE = /^While it runs, open (http:\S+\/limits) /m

/** Runs the demo without a terminal, like CI. */
function runDemo(...nodeOptions: string[]): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const args = ["--import", "tsx", ...nodeOptions, "examples/src/demo/main.ts"]
    const child = spawn(process.execPath, args, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] })
    let output = ""
    let errors = ""
    let page: Promise<Response[]> | undefined
    child.stdout.on("data", (text: Buffer) => {
      output += text
      const url = PAGE.exec(output)?.[1]
      if (url !== undefined) {
        page ??= Promise.all(["/", "/overview.json", "/events"].map((path) => fetch(url + path)))
      }
    })
    child.stderr.on("data", (text: Buffer) => {
      errors += text
    })
    child.once("error", reject).once("close", async (code) => {
      resolve({ code, output, errors, page: (await page) ?? [] })
    })
  })
}

/** Code that removes Retry-After from every response of the process. */
const FORGETFUL = `import { ServerResponse } from "node:http"
const { setHeader, writeHead } = ServerResponse.prototype
ServerResponse.prototype.setHeader = function (name, value) {
  return name.toLowerCase() === "retry-after" ? this : setHeader.call(this, name, value)
}
ServerResponse.prototype.writeHead = function (status, ...rest) {
  const headers = rest.at(-1)
  if (typeof headers === "object") delete headers["retry-after"]
  return writeHead.call(this, status, ...rest)
}`

describe.concurrent("the demo", () => {
  let sound: Ended
  let forgetful: Ended

  beforeAll(async () => {
    const preload = `data:text/javascript,${encodeURIComponent(FORGETFUL)}`
    ;[sound, forgetful] = await Promise.all([runDemo(), runDemo("--import", preload)])
  })

  it("exits with code 0 and without warnings if there is no terminal", () => {
    expect(sound.errors).toBe("")
    expect(sound.code).toBe(0)
  })

  it("prints the address of a page, which opens while the clients send and does not count", () => {
    expect(sound.output.match(PAGE)?.index).toBeLessThan(sound.output.indexOf("203.0.113."))
    const types = sound.page.map(({ status, headers }) => [status, headers.get("content-type")])
    expect(types).toEqual([
      [200, expect.stringContaining("text/html")],
      [200, expect.stringContaining("application/json")],
      [200, expect.stringContaining("text/event-stream")],
    ])
    for (const { headers } of sound.page) expect(headers.get("ratelimit-policy")).toBeNull()
  })

  it("shows each client of each framework once", () => {
    const rows = sound.output.match(/^.*203\.0\.113\.\d0 .*$/gm)?.slice(0, 9) ?? []
    expect(rows.filter((row) => /^(Express|Fastify|Koa) /.test(row))).toHaveLength(3)
    const client = (host: number) => rows.filter((row) => row.includes(`203.0.113.${host} `))
    for (const row of client(10)) expect(row).toMatch(/ip-1m 100 in 60 s .* 40 +0 +60 *$/)
    for (const row of client(20)) expect(row).toMatch(/ip-1m 100 in 60 s .* 1\d\d +\d+ +\d+ +\d+ s$/)
    for (const row of client(30)) expect(row).toMatch(/search 3 in 1 s .* \d s ✓$/)
    expect([10, 20, 30].map((host) => client(host).length)).toEqual([3, 3, 3])
  })

  it("shows one refused response in full", () => {
    expect(sound.output.match(/^HTTP\/1\.1 .*$/gm)).toEqual(["HTTP/1.1 429 Too Many Requests"])
    expect(sound.output).toMatch(/^RateLimit: .*"search";r=0;t=\d+$/m)
    expect(sound.output).toMatch(/^Retry-After: \d+$/m)
    const body = sound.output.slice(sound.output.indexOf("\n{\n"), sound.output.indexOf("\n}\n") + 2)
    expect(JSON.parse(body)).toMatchObject({ title: "Quota Exceeded", "violated-policies": ["search"] })
  })

  it("prints a summary, and reports that clients were admitted after their wait", () => {
    expect(sound.output).toMatch(
      /^✓ 537 requests: \d+ admitted, \d+ refused, and every limit admitted exactly/m,
    )
    expect(sound.output).toMatch(
      /^✓ The client 203\.0\.113\.30 waited .* admitted: Express, Fastify, Koa\.$/m,
    )
    expect(sound.output).not.toContain("✗")
  })

  it("prints plain text of at most 100 columns", () => {
    expect(sound.output).not.toContain("\u001b")
    for (const line of sound.output.split("\n")) expect(line.length).toBeLessThanOrEqual(100)
  })

  it("exits with code 1 and reports the problem when a refusal has no Retry-After", () => {
    expect(forgetful.code).toBe(1)
    expect(forgetful.output).toMatch(
      /^✗ Express, 203\.0\.113\.20, "ip-1m": a refusal does not say when to come back$/m,
    )
    expect(forgetful.output).not.toContain("✓ 5")
  })
})

/**
 * The `script` of util-linux runs a command in a new terminal. On other systems, `script` is a different program.
 */
const hasTerminal =
  spawnSync("/usr/bin/script", ["--version"], { encoding: "utf8" }).stdout?.includes("util-linux") ?? false

describe.skipIf(!hasTerminal)("the demo in a terminal", { concurrent: true }, () => {
  it("continues to serve requests after the summary, and exits with code 0 on Ctrl-C", async () => {
    // Use exec, because some shells otherwise stay in front of the command and exit with 130 on Ctrl-C.
    const command = `exec "${process.execPath}" --import tsx examples/src/demo/main.ts`
    const child = spawn("/usr/bin/script", ["-qec", command, "/dev/null"], {
      cwd: root,
      env: { ...env, NO_COLOR: "1" },
    })
    const ended = new Promise((resolve) => child.once("close", resolve))
    let output = ""
    await new Promise<void>((resolve, reject) => {
      child.stdout.on("data", (text: Buffer) => {
        output += text
        if (output.includes("Ctrl-C ends it.")) resolve()
      })
      child.once("close", () => reject(new Error(`It ended by itself: ${output}`)))
    })
    const urls = [...output.matchAll(/curl -i "(http:\S+?)\[1-6\]"/g)].map(([, url]) => url ?? "")
    expect(urls).toHaveLength(3)
    for (const url of urls) expect((await fetch(`${url}1`)).status).toBe(200)

    child.stdin.write("\u0003")
    expect(await ended).toBe(0)
    // The table is redrawn in place several times, without color, because NO_COLOR is set.
    expect(output.split("\u001b[10A").length).toBeGreaterThan(5)
    expect(output).not.toContain("\u001b[32m")
  })
})
