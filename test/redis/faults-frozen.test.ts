import { setTimeout as sleep } from "node:timers/promises"
import { peekStore } from "@sluice/core/stores"
import { redisStore } from "@sluice/redis"
import { beforeEach, describe, expect, it } from "vitest"
import { FIXED } from "../../packages/contracts/src/store/asking.ts"
import { endsWithin } from "../servers/ends-within.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { until } from "../servers/until.ts"
import { callsOf, keysWithoutTtl, unitsIn } from "./counted.ts"
import { afterwards, asker, checkEachTest } from "./load.ts"
import { type Library, librariesInTurn, openClient } from "./open-client.ts"

checkEachTest()

const { server } = await redisForTests()
beforeEach(() => server.command("FLUSHALL"))

async function openStore(library: Library, denyCacheMs?: number) {
  const { client, close } = await openClient({ library, ports: [server.port], isCluster: false })
  afterwards(close)
  const store = redisStore({ client, denyCacheMs })
  afterwards(() => store.close())
  return store
}

describe.each(librariesInTurn(1))("with %s, a server that is frozen under load", (library) => {
  it("delays no decision beyond its deadline, counts no late requests, and counts again after it resumes", async () => {
    const app = asker(await openStore(library))
    const stop = app.load()
    await until("the load is on", () => app.granted() > 200)

    server.freeze()
    await until("no call is waiting", () => app.decidesAtOnce())
    const opened = app.decisions.length
    const told = app.events.length
    expect(app.events.at(-1)).toBe("degraded")
    await sleep(300)
    await until("many have been decided", () => app.decisions.length > opened + 50)
    expect(app.decisions.slice(opened).every(({ degraded, allowed }) => degraded && allowed)).toBe(true)
    expect(await app.decidesAtOnce()).toBe(true)
    const granted = app.granted()
    expect(app.events).toHaveLength(told)

    server.thaw()
    await until("it counts again", () => app.granted() > granted)
    await stop()
    await app.askUntilRecovered()
    expect(app.late).toBe(0)
    // Units that Redis counted before the freeze, but reported only after it, have been refunded.
    await until("it has counted what was granted", async () => (await unitsIn(server, "")) === app.granted())
    expect(await keysWithoutTtl(server)).toEqual([])
  })

  it("receives only the few calls needed to detect the outage", async () => {
    const app = asker(await openStore(library))
    await app.askUntil(false)
    await server.command("CONFIG", "RESETSTAT")
    server.freeze()
    const stop = app.load()
    await until("no call is waiting", () => app.decidesAtOnce())
    const opened = app.decisions.length
    await sleep(500)
    await until("many have been decided", () => app.decisions.length > opened + 100)
    await stop()
    server.thaw()
    // Redis processes the calls that were sent during the freeze before it responds to this call.
    await app.askUntil(false)
    const calls = await callsOf(server)
    expect(calls.get("evalsha")).toBeLessThan(20)
    await until("it has counted what was granted", async () => (await unitsIn(server, "")) === app.granted())
  })
})

describe("a server that is frozen from the start", () => {
  it("degrades the first decisions at their deadline, and counts once it resumes", async () => {
    const store = await openStore("ioredis 6")
    server.freeze()
    const app = asker(store)
    const first = await Promise.all([app.ask(), app.ask("192.0.2.2")])
    expect(first.map(({ degraded }) => degraded)).toEqual([true, true])
    // The store's first call requests the server's time. That call got no reply, so this decision sends it again.
    expect((await app.ask()).degraded).toBe(true)
    server.thaw()
    await app.askUntil(false)
    expect(app.late).toBe(0)
    await until("it has counted what was granted", async () => (await unitsIn(server, "")) === app.granted())
  })
})

it("a cached refusal does not count as a sign that the server responds again", async () => {
  const app = asker(await openStore("ioredis 6", 60_000), { limit: 1 })
  const isRefused = async () => {
    const { degraded, allowed } = await app.ask("192.0.2.9")
    return !degraded && !allowed
  }
  await until("it is refused", isRefused)
  server.freeze()
  await app.askUntil(true, "192.0.2.1")
  const told = app.events.length
  expect(app.events.at(-1)).toBe("degraded")
  for (let knocks = 0; knocks < 15; knocks++) {
    expect(await isRefused()).toBe(true)
    await sleep(100)
  }
  expect(app.events).toHaveLength(told)
  server.thaw()
  await app.askUntilRecovered()
})

describe("the calls peek, refund and reset", () => {
  it("reject by their deadline while the server is frozen", async () => {
    const store = await openStore("ioredis 6")
    server.freeze()
    const policy = { ...POLICY }
    const check = { policy, partition: "a", cost: 1, shadow: false }
    const asked = Promise.allSettled([
      peekStore(store, [check], 20),
      store.refund([{ policy, partition: "a", units: 1, after: { startMs: 0, current: 1, previous: 0 } }]),
      store.reset([{ policy, partition: "a" }]),
    ])
    expect(await endsWithin(200, asked)).toBe(true)
    const outcomes = await asked
    const reasons = outcomes.map((outcome) => (outcome.status === "rejected" ? outcome.reason.code : "fine"))
    expect(reasons).toEqual(Array(3).fill("SLUICE_STORE_UNAVAILABLE"))
    server.thaw()
  })
})

const POLICY = { ...FIXED, windowMs: 86_400_000 }
