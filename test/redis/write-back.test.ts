import { redisStore } from "@sluice/redis"
import { writeBackStore } from "@sluice/scale"
import { Redis } from "ioredis"
import { beforeEach, describe, expect, it } from "vitest"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { until } from "../servers/until.ts"
import { keysWithoutTtl, unitsIn } from "./counted.ts"
import { afterwards, asker, checkEachTest } from "./load.ts"

checkEachTest()

const { server } = await redisForTests()
beforeEach(() => server.command("FLUSHALL"))

/** Creates a store that writes back to Redis, as a separate process would. */
function open() {
  const client = new Redis(server.port, server.host)
  client.on("error", () => {})
  afterwards(() => client.disconnect())
  const store = writeBackStore(redisStore({ client }))
  afterwards(() => store.close())
  return store
}

describe("two processes that write back to one Redis", () => {
  it("see each other's units, and Redis counts exactly the units that they granted", async () => {
    const apps = [open(), open()].map((store) => asker(store, { field: "service", limit: 1_000 }))
    const [one, other] = apps as [(typeof apps)[0], (typeof apps)[0]]
    await one.ask("", 300)
    await other.ask("", 200)
    await until("each process knows the units of both", async () => {
      const decisions = await Promise.all(apps.map((app) => app.ask("", 0)))
      return decisions.every(({ remaining }) => remaining === 500)
    })
    const stops = apps.map((app) => app.load())
    await until("both are refused", () => apps.every(({ decisions }) => decisions.at(-1)?.allowed === false))
    for (const stop of stops) await stop()
    const granted = one.granted() + other.granted()
    expect(granted).toBeGreaterThanOrEqual(1_000)
    await until("everything is charged", async () => (await unitsIn(server, "")) === granted)
    expect(await keysWithoutTtl(server)).toEqual([])
    expect([one.late, other.late]).toEqual([0, 0])
  })
})

describe("a Redis that is frozen behind a store that writes back", () => {
  it("delays no request, and degrades decisions within two seconds until Redis responds again", async () => {
    const store = open()
    const app = asker(store, { field: "service" })
    const stop = app.load()
    await until("charges are confirmed", async () => (await unitsIn(server, "")) > 100)

    server.freeze()
    const frozenAtMs = performance.now()
    expect(await app.decidesAtOnce()).toBe(true)
    await until("decisions are degraded", () => app.events.at(-1) === "degraded")
    expect(performance.now() - frozenAtMs).toBeLessThan(2_000)
    expect(await app.decidesAtOnce()).toBe(true)
    expect((await app.ask("")).degraded).toBe(true)
    expect(store.status?.writeBack?.failingMs).toBeGreaterThan(0)

    server.thaw()
    await until("decisions are confirmed again", async () => !(await app.ask("")).degraded)
    await stop()
    await app.askUntilRecovered()
    expect(app.late).toBe(0)
    // Redis counted the units of every decision, or the store reported them as lost. Redis may have counted some of
    // the lost units too.
    const all = app.decisions.reduce((sum, { allowed, cost }) => sum + (allowed ? cost : 0), 0)
    await store.close()
    const counted = await unitsIn(server, "")
    const { lost = 0 } = store.status?.writeBack ?? {}
    expect(counted).toBeLessThanOrEqual(all)
    expect(counted + lost).toBeGreaterThanOrEqual(all)
    expect(await keysWithoutTtl(server)).toEqual([])
  })
})
