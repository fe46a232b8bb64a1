import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { expect, it, onTestFinished } from "vitest"
import { freePort } from "./servers/free-port.ts"

const root = fileURLToPath(new URL("..", import.meta.url))
const withTsx = [process.execPath, "--import", "tsx"]

// Starts each framework as its command in package.json does, without the build.
it.each(["express", "fastify", "koa"])(
  "the live example on %s applies rules from DynamoDB with counters in Redis until it is terminated",
  async (framework) => {
    const port = await freePort()
    const child = spawn(
      withTsx[0] as string,
      [
        ...withTsx.slice(1),
        "test/servers/with-servers.ts",
        ...withTsx,
        "examples/src/live/main.ts",
        framework,
      ],
      { cwd: root, env: { ...process.env, PORT: String(port), TSX_TSCONFIG_PATH: "examples/tsconfig.json" } },
    )
    onTestFinished(() => void child.kill("SIGKILL"))
    const ended = new Promise((resolve) => child.once("close", resolve))
    let said = ""
    await new Promise<void>((resolve, reject) => {
      const listen = (text: Buffer): void => {
        said += text
        if (said.includes("Ctrl-C ends it.")) resolve()
      }
      child.stdout.on("data", listen)
      child.stderr.on("data", listen)
      child.once("close", (code) => reject(new Error(`It ended with ${code}: ${said}`)))
    })
    expect(said).toContain(`curl -i -H "x-user-id: ann" "http://127.0.0.1:${port}/orders?n=[1-6]"`)
    const ask = () => fetch(`http://127.0.0.1:${port}/orders`, { headers: { "x-user-id": "ann" } })
    // The limit is 5 per minute, or 10 per day if the minute ends during the test.
    let admitted = 0
    let response = await ask()
    for (; response.status === 200; response = await ask()) admitted++
    expect(response.status).toBe(429)
    expect([5, 6, 7, 8, 9, 10]).toContain(admitted)
    expect(await response.text()).toMatch(/retry-with-exponential-backoff|exhausted-daily-limit/)
    child.kill("SIGTERM")
    expect(await ended).toBe(0)
  },
)
