import { spawn } from "node:child_process"
import { closeSync, existsSync, openSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type DynamoDBServer, startDynamoDB } from "../servers/dynamodb.ts"
import { useFolder } from "./folder.ts"
import type { Ran } from "./in-process.ts"

// Runs the built program, as a user does. `pnpm test` builds it first.

const SLUICE = fileURLToPath(new URL("../../packages/cli/bin/sluice.js", import.meta.url))
/** The only environment variables that Node needs. */
const ENV = { PATH: process.env.PATH ?? "", HOME: tmpdir() }

/** Runs the program. `read` is the amount of output to read before the pipe is closed. */
function sluice(argv: readonly string[], { input = "", read = Number.POSITIVE_INFINITY } = {}): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [SLUICE, ...argv], { env: ENV })
    let out = ""
    let err = ""
    child.stdout.on("data", (text: Buffer) => {
      out += text
      if (out.length >= read) child.stdout.destroy()
    })
    child.stderr.on("data", (text: Buffer) => {
      err += text
    })
    child.once("error", reject).once("close", (code) => resolve({ code: code ?? -1, out, err }))
    child.stdin.on("error", () => undefined).end(input)
  })
}

const { folder } = useFolder()
let server: DynamoDBServer
beforeAll(async () => {
  server = await startDynamoDB()
})
afterAll(() => server.stop())

describe("the program", () => {
  it("checks standard input, and reports on standard output and with the exit code", async () => {
    const good = await sluice(["rules", "check", "-"], {
      input: "rules: { field: ip, limit: 5, window: 1m }\n",
    })
    expect(good).toEqual({ code: 0, out: "1 service, 1 rule: ok\n", err: "" })
    const wrong = await sluice(["rules", "check", "-"], { input: "rules: 5\n" })
    expect(wrong).toMatchObject({
      code: 1,
      err: "",
      out: expect.stringContaining("standard input:1:1: rules: 5 is not"),
    })
    expect(await sluice(["rules", "chek"])).toEqual({
      code: 2,
      out: "",
      err: "error: unknown command 'chek'\n(Did you mean check?)\n",
    })
  })

  it.runIf(existsSync("/dev/full"))("reports that its output cannot be written (by /dev/full)", async () => {
    const full = openSync("/dev/full", "w")
    const child = spawn(process.execPath, [SLUICE, "rules", "check", "-"], {
      env: ENV,
      stdio: ["pipe", full, "pipe"],
    })
    closeSync(full)
    let err = ""
    child.stderr?.on("data", (text: Buffer) => {
      err += text
    })
    child.stdin?.end("rules: { limit: 5, window: 1m }\n")
    expect(await new Promise((resolve) => child.once("close", resolve))).toBe(2)
    expect(err).toBe("error: the output cannot be written: ENOSPC: no space left on device, write\n")
  })

  it("pushes rules to a table and pulls them back without any AWS settings", async () => {
    const where = ["--table", "rules", "--endpoint", server.endpoint]
    const file = join(folder, "rules.yaml")
    await writeFile(file, "service_id: a\nrules: [{ limit: 5, window: 1m }]\n")
    expect(await sluice(["rules", "create-table", ...where])).toEqual({
      code: 0,
      out: "table rules is ready\n",
      err: "",
    })
    expect((await sluice(["rules", "push", file, ...where])).out).toBe(
      "a: registered, version 1\n  + service-1m\n",
    )
    const pulled = await sluice(["rules", "pull", ...where])
    expect(pulled).toMatchObject({ code: 0, err: "" })
    expect((await sluice(["rules", "diff", "-", ...where], { input: pulled.out })).code).toBe(0)
  })

  it("ends quietly if the reader of its output stops reading", async () => {
    const file = join(folder, "many.yaml")
    await writeFile(file, `rules:\n${"  - { limit: 0, window: 1m }\n".repeat(5_000)}`)
    const { out, err } = await sluice(["rules", "check", file], { read: 1 })
    expect(out.length).toBeGreaterThan(0)
    expect(err).toBe("")
  })

  it("writes all of a long output to a pipe before it ends", async () => {
    const file = join(folder, "many.yaml")
    const { code, out } = await sluice(["rules", "check", file])
    expect(code).toBe(1)
    // Each rule has a wrong limit. All except the first also repeat the name of an earlier rule.
    expect(out).toMatch(/\n9,999 problems in 1 file\n$/)
  })
})
