import { spawn } from "node:child_process"
import { readFile } from "node:fs/promises"
import { type AddressInfo, createServer } from "node:net"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"

const examples = fileURLToPath(new URL("..", import.meta.url))
const { scripts } = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8")) as {
  scripts: Record<string, string>
}

/** The limited route of each example: its method and path. */
const LIMITED: Readonly<Record<string, readonly [method: string, path: string]>> = {
  express: ["GET", "/"],
  fastify: ["GET", "/"],
  koa: ["GET", "/"],
  metrics: ["GET", "/"],
  "rules-file": ["POST", "/checkout"],
  "sign-in": ["POST", "/login"],
  "second-factor": ["POST", "/cards"],
  plans: ["GET", "/reports"],
  bookings: ["POST", "/bookings"],
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === "object" && address !== null ? address.port : 0
}

/**
 * Runs a script of an example, as the README describes. When the example reports that it listens, runs `meanwhile`,
 * and ends the script afterwards.
 */
async function run(script: string, port: number, meanwhile: () => Promise<void>): Promise<void> {
  const [, file = ""] = script.split(" ")
  const child = spawn(process.execPath, ["--import", "tsx", file], {
    cwd: examples,
    env: { ...process.env, PORT: String(port) },
  })
  const ended = new Promise((resolve) => child.once("close", resolve))
  try {
    await new Promise<void>((resolve, reject) => {
      let said = ""
      const listen = (text: Buffer): void => {
        said += text
        if (new RegExp(`istens on http://\\S+:${port}\\b`).test(said)) resolve()
      }
      child.stdout.on("data", listen)
      child.stderr.on("data", listen)
      child.once("error", reject).once("close", (code) => reject(new Error(`It ended with ${code}: ${said}`)))
    })
    await meanwhile()
  } finally {
    child.kill()
    await ended
  }
}

describe("an example", () => {
  it.each(Object.entries(scripts))(
    "that is started by the script %s listens on PORT and limits requests",
    async (name, script) => {
      const [method, path] = LIMITED[name] ?? []
      if (method === undefined) throw new Error(`What does ${name} limit? Add a row.`)
      const port = await freePort()
      await run(script, port, async () => {
        const answer = await fetch(`http://localhost:${port}${path}`, {
          method,
          headers: { authorization: "Bearer token-of-ann", "content-type": "application/json" },
          ...(method === "POST" && { body: "{}" }),
        })
        expect(answer.status).not.toBe(404)
        expect(answer.headers.get("ratelimit")).toMatch(/;r=\d+;t=\d+$/)
      })
    },
  )

  // Test one example per framework. All other examples start their server in one of these ways.
  it.each(["express", "fastify", "koa"])(
    "that is started by the script %s reports that its port is in use, and exits",
    async (name) => {
      const other = createServer()
      await new Promise<void>((resolve) => other.listen(0, resolve))
      const { port } = other.address() as AddressInfo
      const failed = run(scripts[name] ?? "", port, async () => {})
      await expect(failed).rejects.toThrow(/^It ended with 1: .*EADDRINUSE/s)
      await expect(failed).rejects.not.toThrow(/istens on/)
      await new Promise((resolve) => other.close(resolve))
    },
  )
})
