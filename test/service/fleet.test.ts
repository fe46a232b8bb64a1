import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { unitsIn } from "../redis/counted.ts"
import { freePort } from "../servers/free-port.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import { startHere } from "./in-process.ts"
import { type Program, startProgram } from "./program.ts"
import { rulesFile } from "./rules-file.ts"
import { type Called, openStranger, type Stranger } from "./stranger.ts"

const LIMIT = 500
/** Callers pause between calls, because they test for failures and not for throughput. */
const PAUSE_MS = 10
/** Windows that do not end during a test. */
const RULES = `
service_id: 1
rules: { name: all, algorithm: fixed-window, align: first-hit, limit: ${LIMIT}, window: 1 week }
---
service_id: 2
rules: { name: many, algorithm: fixed-window, align: first-hit, limit: 1000000, window: 1 week }
`

let server: RedisServer
const rules = rulesFile(RULES)
const opened: { close(): unknown }[] = []
beforeAll(async () => {
  server = await startRedis()
})
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close()
})
afterAll(() => server.stop())

function stranger(address: string): Stranger {
  const client = openStranger(address, "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter")
  opened.push(client)
  return client
}

const isForwarded = (called: Called): boolean => "value" in called && called.value.should_forward === true

/** Returns arguments with timeouts for Redis that are long enough for a busy machine. */
function argsOf(prefix: string): readonly string[] {
  return ["--rules", rules, "--redis-prefix", prefix, "--store-timeout", "20s"]
}

function environment(): { readonly REDIS_URL: string } {
  return { REDIS_URL: `redis://${server.host}:${server.port}` }
}

describe("three instances on one Redis", { timeout: 300_000 }, () => {
  it("together admit exactly the limit, even if one instance is killed meanwhile", async () => {
    const args = argsOf("killed:")
    const env = environment()
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
    // Redis still counts all units for the remaining instances. However, some responses of the killed instance never
    // arrived.
    const told = answers.filter(isForwarded).length
    expect(told).toBeLessThanOrEqual(LIMIT)
    expect(answers.slice(LIMIT).every((called) => "value" in called)).toBe(true)
    while (isForwarded(await (clients[1] as Stranger).call("ShouldForwardRequest", { service_id: 1 })));
    expect(await unitsIn(server, "killed:")).toBe(LIMIT)
  })

  it("can be restarted one after another without a failed decision", async () => {
    const ports = [await freePort(), await freePort(), await freePort()]
    const startOn = async (port: number): Promise<Program> => {
      const args = [...argsOf("rolled:"), "--grpc", `127.0.0.1:${port}`, "--drain-pause", "1s"]
      const program = await startProgram(args, environment())
      opened.push({ close: () => program.stop() })
      await program.said("The service is ready.")
      return program
    }
    const instances: Program[] = []
    for (const port of ports) instances.push(await startOn(port))
    const all = `ipv4:${ports.map((port) => `127.0.0.1:${port}`).join(",")}`
    // Call the instances in turn, as a load balancer would. Otherwise, all calls would go to one instance.
    const client = openStranger(all, "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter", {
      "grpc.service_config": JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
    })
    opened.push(client)
    let isOver = false
    let decisions = 0
    const failures: unknown[] = []
    const load = Array.from({ length: 8 }, async () => {
      while (!isOver) {
        const called = await client.call("ShouldForwardRequest", { service_id: 2 })
        if (!isForwarded(called)) failures.push(called)
        decisions++
        await sleep(PAUSE_MS)
      }
    })
    const more = (count: number): Promise<void> => {
      const from = decisions
      return until(`${count} more decisions`, () => decisions >= from + count)
    }
    await more(200)
    for (const [index, port] of ports.entries()) {
      const leaving = instances[index] as Program
      leaving.signal("SIGTERM")
      expect(await leaving.ended).toEqual({ code: 0, signal: null })
      await more(100)
      instances[index] = await startOn(port)
      await more(100)
    }
    isOver = true
    await Promise.all(load)
    expect(failures).toEqual([])
    expect(await unitsIn(server, "rolled:")).toBe(decisions)
  })
})
