import { execFile, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"
import { startDynamoDB } from "../servers/dynamodb.ts"

const examples = fileURLToPath(new URL("../../examples", import.meta.url))
const FREE = "127.0.0.1:0"
const PORTS = ["--grpc", FREE, "--http", FREE, "--operations", FREE]

/**
 * Runs the script, and passes the curl lines that it prints to `meanwhile`. Ends the script after that, and resolves
 * with the exit code.
 */
async function run(args: readonly string[], meanwhile: (curls: readonly string[]) => Promise<void>) {
  const child = spawn(process.execPath, ["--import", "tsx", "src/service/main.ts", ...PORTS, ...args], {
    cwd: examples,
    env: { PATH: process.env.PATH ?? "" },
  })
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve))
  let said = ""
  try {
    await new Promise<void>((resolve, reject) => {
      const listen = (text: Buffer): void => {
        said += text
        if (/Try.*\n\n(?: {2}curl .*\n)+\n/.test(said)) resolve()
      }
      child.stdout.on("data", listen)
      child.stderr.on("data", listen)
      child.once("error", reject).once("close", (code) => reject(new Error(`It ended with ${code}: ${said}`)))
    })
    await meanwhile(said.split("\n").filter((line) => line.startsWith("  curl ")))
  } finally {
    child.kill()
  }
  return ended
}

/** Runs a printed line in a shell, and parses its output as JSON. */
async function shell(line = ""): Promise<Readonly<Record<string, unknown>>> {
  const { stdout } = await promisify(execFile)("sh", ["-c", line])
  return JSON.parse(stdout)
}

describe("the service that one command starts", () => {
  it("prints two working lines, one for each service of the contract", async () => {
    const code = await run([], async ([perUser, daily, ...others]) => {
      expect(others).toEqual([])
      expect(await shell(perUser)).toMatchObject({ shouldForward: true, remaining: "4" })
      const refused = async () => (await shell(perUser)).shouldForward === false
      // At most six requests are admitted together, even if a window ends meanwhile.
      let asked = 1
      while (!(await refused())) asked++
      expect(asked).toBeGreaterThanOrEqual(5)
      expect(asked).toBeLessThan(12)
      expect(await shell(daily)).toMatchObject({ shouldForward: true, policy: "daily", remaining: "9" })
    })
    expect(code).toBe(0)
  })

  it("prints how to register a rule and request a decision when it uses a table", async () => {
    const server = await startDynamoDB()
    const args = ["--table", "rules", "--endpoint", server.endpoint, "--create-table"]
    await run(args, async ([register, ask, ...others]) => {
      expect(others).toEqual([])
      expect(await shell(register)).toMatchObject({ version: "1" })
      expect(await shell(ask)).toMatchObject({ shouldForward: true, limit: "5", remaining: "4" })
    })
    await server.stop()
  })
})
