import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { unitsIn } from "../redis/counted.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { startHere } from "./in-process.ts"
import { startProgram } from "./program.ts"
import { type Called, openStranger, type Stranger } from "./stranger.ts"

const LIMIT = 500
/** A window that does not end during a test. */
const RULES = `
service_id: 1
rules: { name: all, algorithm: fixed-window, align: first-hit, limit: ${LIMIT}, window: 1 week }
`

let server: RedisServer
let folder: string
const opened: { close(): unknown }[] = []
beforeAll(async () => {
  server = await startRedis()
  folder = mkdtempSync(join(tmpdir(), "sluice-fleet-"))
  writeFileSync(join(folder, "rules.yaml"), RULES)
})
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close()
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await server.stop()
})

function stranger(address: string): Stranger {
  const client = openStranger(address, "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter")
  opened.push(client)
  return client
}

const isForwarded = (called: Called): boolean => "value" in called && called.value.should_forward === true

describe("three instances on one Redis", { timeout: 300_000 }, () => {
  it("admit exactly the limit together, even if one is killed in the middle", async () => {
    // They wait for Redis as long as a busy machine may need.
    const args = [
      "--rules",
      join(folder, "rules.yaml"),
      "--redis-prefix",
      "killed:",
      "--store-timeout",
      "20s",
    ]
    const env = { REDIS_URL: `redis://${server.host}:${server.port}` }
    const killed = await startProgram(args, env)
    opened.push({ close: () => killed.stop() })
    const others = await Promise.all([startHere(args, env), startHere(args, env)])
    opened.push(...others.map((each) => ({ close: () => each.stop() })))
    const instances = [killed, ...others]
    await Promise.all(instances.map((each) => each.said("The service is ready.")))
    const clients = instances.map(({ grpc }) => stranger(grpc))
    let answered = 0
    const ended = killed.ended
    const asked = clients.flatMap((client) =>
      Array.from({ length: LIMIT }, async () => {
        const called = await client.call("ShouldForwardRequest", { service_id: 1 })
        if (++answered === 200) killed.signal("SIGKILL")
        return called
      }),
    )
    const answers = await Promise.all(asked)
    expect(await ended).toEqual({ code: null, signal: "SIGKILL" })
    // The remaining instances have seen everything that was counted. Some units of the killed instance were never
    // reported.
    const told = answers.filter(isForwarded).length
    expect(told).toBeLessThanOrEqual(LIMIT)
    expect(answers.slice(LIMIT).every((called) => "value" in called)).toBe(true)
    while (isForwarded(await (clients[1] as Stranger).call("ShouldForwardRequest", { service_id: 1 })));
    expect(await unitsIn(server, "killed:")).toBe(LIMIT)
  })
})
