import { setTimeout as sleep } from "node:timers/promises"
import { redisStore } from "@sluice/core/redis"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import { callsOf, keysWithoutTtl, unitsIn } from "./counted.ts"
import { afterwards, asker } from "./load.ts"
import { type Library, openClient } from "./open-client.ts"

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
beforeEach(async () => {
  await server.command("FLUSHALL")
})
afterAll(() => server?.stop())

async function openStore(library: Library) {
  const { client, close } = await openClient({ library, ports: [server.port], isCluster: false })
  afterwards(close)
  const store = redisStore({ client })
  afterwards(() => store.close())
  return store
}

describe.each<Library>(["ioredis 6", "node-redis 6"])(
  "with %s, a server that is frozen under load",
  (library) => {
    it("holds no decision beyond its deadline, counts nothing for nobody, and counts again when it is back", async () => {
      const app = asker(await openStore(library))
      const stop = app.load()
      await until("the load is on", () => app.decisions.length > 200 && app.granted() > 200)

      server.freeze()
      await until("nobody waits any more", () => app.decidesAtOnce())
      const opened = app.decisions.length
      await sleep(300)
      expect(app.decisions.length - opened).toBeGreaterThan(50)
      expect(app.decisions.slice(opened).every(({ degraded, allowed }) => degraded && allowed)).toBe(true)
      expect(await app.decidesAtOnce()).toBe(true)
      const granted = app.granted()
      expect(app.events).toEqual(["degraded"])

      server.thaw()
      const thawedAt = performance.now()
      await until("it counts again", () => app.granted() > granted)
      expect(performance.now() - thawedAt).toBeLessThan(2_000)
      await until("it has recovered", () => app.events.length > 1)
      await stop()
      expect(app.events).toEqual(["degraded", "recovered"])
      expect(app.lines).toEqual(["SLUICE_DEGRADED", "SLUICE_RECOVERED"])
      expect(app.late).toBe(0)
      // What Redis had counted when it froze, and told of after it thawed, has been given back.
      await until(
        "it has counted what was granted",
        async () => (await unitsIn(server, "")) === app.granted(),
      )
      expect(await keysWithoutTtl(server)).toEqual([])
    })

    it("gets no more calls than it takes to find out", async () => {
      const app = asker(await openStore(library))
      await app.ask()
      server.freeze()
      const stop = app.load()
      await until("nobody waits any more", () => app.decidesAtOnce())
      await sleep(500)
      await stop()
      const asked = app.decisions.length
      expect(asked).toBeGreaterThan(100)
      const before = Number((await afterThaw()).get("evalsha"))
      expect(before).toBeLessThan(20)
      expect(await unitsIn(server, "")).toBe(1)
    })

    /** Calls that the server has run, once it has read what was sent while it was frozen. */
    async function afterThaw() {
      server.thaw()
      await server.command("PING")
      await sleep(50)
      return callsOf(server)
    }

    beforeEach(async () => {
      await server.command("CONFIG", "RESETSTAT")
    })
  },
)

describe("a server that is frozen from the start", () => {
  it("degrades the first decisions by their deadline, and counts when it is back", async () => {
    const store = await openStore("ioredis 6")
    server.freeze()
    const app = asker(store)
    const first = await Promise.all([app.ask(), app.ask("192.0.2.2")])
    expect(first.map(({ degraded }) => degraded)).toEqual([true, true])
    // The question for the time, which is the first of all, was asked by then, and is asked again.
    expect((await app.ask()).degraded).toBe(true)
    server.thaw()
    await app.askUntil(false)
    expect(app.late).toBe(0)
    expect(await unitsIn(server, "")).toBe(app.granted())
  })

  it("is asked again after an outage that was long enough for the breaker to open", async () => {
    const store = await openStore("ioredis 6")
    server.freeze()
    const app = asker(store)
    await until("nobody waits any more", () => app.decidesAtOnce())
    server.thaw()
    await app.askUntil(false)
    expect(app.late).toBe(0)
    expect(await unitsIn(server, "")).toBe(app.granted())
  })
})

it("a refusal that is remembered is no sign that the server is back", async () => {
  const app = asker(await openStore("ioredis 6"), { limit: 1 })
  await app.ask("192.0.2.9")
  await app.ask("192.0.2.9")
  server.freeze()
  await app.ask("192.0.2.1")
  const knocksUntilMs = performance.now() + 1_500
  while (performance.now() < knocksUntilMs) {
    await app.ask("192.0.2.9")
    await sleep(100)
  }
  expect(app.events).toEqual(["degraded"])
  server.thaw()
  await until("it has recovered", async () => !(await app.ask("192.0.2.2")).degraded && app.events.length > 1)
})

describe("what is not taking", () => {
  it("peeks, gives back and resets in time, with a frozen server too", async () => {
    const app = asker(await openStore("ioredis 6"))
    await app.ask()
    const store = await openStore("ioredis 6")
    server.freeze()
    const policy = { ...POLICY }
    const check = { policy, partition: "a", cost: 1, shadow: false }
    const startedAt = performance.now()
    const outcomes = await Promise.allSettled([
      store.peek([[check]], 20),
      store.giveBack([{ policy, partition: "a", units: 1, after: { startMs: 0, current: 1, previous: 0 } }]),
      store.reset([{ policy, partition: "a" }]),
    ])
    const reasons = outcomes.map((outcome) => (outcome.status === "rejected" ? outcome.reason.code : "fine"))
    expect(reasons).toEqual(Array(3).fill("SLUICE_STORE_UNAVAILABLE"))
    expect(performance.now() - startedAt).toBeLessThan(1_000)
    server.thaw()
  })
})

const POLICY = {
  name: "limit",
  counter: "counter1",
  algorithm: "fixed-window",
  limit: 10,
  windowMs: 86_400_000,
  align: "epoch",
} as const
