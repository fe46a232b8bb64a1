import { afterAll, describe, expect, it } from "vitest"
import { createLimiter } from "../../packages/core/src/limiter/create-limiter.ts"
import { redisStore } from "../../packages/redis/src/redis-store.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { callsBetween, callsOf, keysWithoutTtl } from "./counted.ts"

const { server, client } = await redisForTests()
let made = 0
afterAll(async () => {
  expect(await keysWithoutTtl(server)).toEqual([])
})

const ALGORITHMS = [
  "sliding-window",
  "sliding-window-strict",
  "sliding-log",
  "fixed-window",
  "token-bucket",
  "leaky-bucket",
] as const
const ALICE = { remoteAddress: "192.0.2.1" }

/** Creates limiters of `count` processes on one counter with 3 units in 30 days. Each limiter has its own capacity. */
function processes(count: number, algorithm: (typeof ALGORITHMS)[number], ceiling?: number) {
  const prefix = `e${made++}:`
  return Array.from({ length: count }, () => {
    const capacity = { isSpare: true }
    const throttle = { kind: "elastic", signal: () => capacity.isSpare, ceiling } as const
    const store = redisStore({ client, prefix, timeoutMs: 20_000, denyCacheMs: 60_000 })
    const limiter = createLimiter({
      limit: 3,
      window: "30 days",
      name: "month",
      service: "elastic",
      algorithm,
      throttle,
      store,
      storeTimeoutMs: 20_000,
      logger: { warn() {}, error() {} },
    })
    const ask = async (cost = 1) => {
      const { allowed, overLimit } = await limiter.decide(ALICE, { cost })
      return `${allowed ? "admit" : "refuse"}${overLimit ? " over" : ""}`
    }
    return { capacity, limiter, ask }
  })
}

describe.each(ALGORITHMS)("an elastic %s rule in Redis", (algorithm) => {
  it("refuses a client while there is no capacity, and admits the client as soon as there is capacity", async () => {
    const [one] = processes(1, algorithm, 6)
    if (one === undefined) throw new Error("there is no process")
    const { capacity, ask } = one
    capacity.isSpare = false
    expect([await ask(), await ask(), await ask(), await ask()]).toEqual([
      "admit",
      "admit",
      "admit",
      "refuse",
    ])
    // The refusal is cached, so no command is sent.
    const before = await callsOf(server)
    expect([await ask(), await ask()]).toEqual(["refuse", "refuse"])
    expect(callsBetween(before, await callsOf(server))).toEqual({})
    capacity.isSpare = true
    expect([await ask(), await ask()]).toEqual(["admit over", "admit over"])
    capacity.isSpare = false
    expect(await ask()).toBe("refuse")
    capacity.isSpare = true
    expect([await ask(), await ask()]).toEqual(["admit over", "refuse"])
    // A request that was refused at the ceiling is also refused at the limit, without a Redis command.
    const atCeiling = await callsOf(server)
    capacity.isSpare = false
    expect([await ask(), await ask()]).toEqual(["refuse", "refuse"])
    capacity.isSpare = true
    expect([await ask(), await ask(2)]).toEqual(["refuse", "refuse"])
    expect(callsBetween(atCeiling, await callsOf(server))).toEqual({})
  })
})
