import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type RedisServer, startRedis } from "../../test/servers/redis-server.ts"
import type { AppSetup } from "./app.ts"
import { askAtOnce, countAdmitted, openClient } from "./client.ts"
import { CONTENDERS, contenderOf } from "./contenders.ts"

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis?.stop())

const WINDOW_MS = 3_600_000
/** The timeout is long enough for a busy machine, so that Redis makes every decision. */
const setup = { limits: [{ limit: 3, windowMs: WINDOW_MS }], storeTimeoutMs: 20_000 }

/** Sends five requests of each of two clients. Returns how many requests of each client were admitted. */
async function admittedBy(name: string, more: Partial<AppSetup>): Promise<number[]> {
  const start = await contenderOf(name).load()
  const app = await start({ ...setup, ...more })
  const client = openClient(app.port, 20_000)
  try {
    const all = await Promise.all(["192.0.2.1", "192.0.2.2"].map((from) => askAtOnce(client, { from }, 5)))
    return all.map(countAdmitted)
  } finally {
    client.close()
    await app.close()
  }
}

describe.each(CONTENDERS)("the app of $name", ({ name }) => {
  it("limits each client behind a proxy, with counters in memory", async () => {
    expect(await admittedBy(name, {})).toEqual([3, 3])
  })

  it("limits each client when mounted on a route", async () => {
    expect(await admittedBy(name, { mount: "route" })).toEqual([3, 3])
  })

  it("enforces several limits with counters in Redis, which outlive the app", async () => {
    await redis.command("FLUSHALL")
    const limits = [
      { limit: 5, windowMs: 1_800_000 },
      { limit: 2, windowMs: WINDOW_MS },
    ]
    const inRedis = { limits, redis: { port: redis.port, isUp: true } }
    expect(await admittedBy(name, inRedis)).toEqual([2, 2])
    expect(await admittedBy(name, inRedis)).toEqual([0, 0])
  })
})

it("contenderOf rejects an unknown name", () => {
  expect(() => contenderOf("nobody")).toThrow("There is no contender nobody")
})
