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

/** Creates limiters of `count` processes on one counter of 3 in 30 days. Each has its own capacity. */
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

describe.each(ALGORITHMS)("an elastic rule over Redis, by %s", (algorithm) => {
  it("admits a client that was refused while saturated as soon as there is capacity, and not before", async () => {
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
    // A request that was refused at the ceiling is also refused at the limit, without a command.
    const atCeiling = await callsOf(server)
    capacity.isSpare = false
    expect([await ask(), await ask()]).toEqual(["refuse", "refuse"])
    capacity.isSpare = true
    expect([await ask(), await ask(2)]).toEqual(["refuse", "refuse"])
    expect(callsBetween(atCeiling, await callsOf(server))).toEqual({})
  })

  it("counts units that one process admits above the limit in all other processes", async () => {
    const [idle, busy] = processes(2, algorithm, 6)
    if (idle === undefined || busy === undefined) throw new Error("there are no two processes")
    busy.capacity.isSpare = false
    expect([await idle.ask(), await idle.ask(), await busy.ask(), await busy.ask()]).toEqual([
      "admit",
      "admit",
      "admit",
      "refuse",
    ])
    expect([await idle.ask(), await idle.ask(), await busy.ask()]).toEqual([
      "admit over",
      "admit over",
      "refuse",
    ])
    // Two processes share one counter up to one ceiling.
    busy.capacity.isSpare = true
    expect([await busy.ask(), await idle.ask(), await busy.ask()]).toEqual(["admit over", "refuse", "refuse"])
  })

  it("returns the current wait on a second refusal, not the wait of the first one", async () => {
    const [one] = processes(1, algorithm, 6)
    if (one === undefined) throw new Error("there is no process")
    const { capacity, ask, limiter } = one
    capacity.isSpare = false
    await ask(3)
    expect(await ask()).toBe("refuse")
    capacity.isSpare = true
    expect(await ask(3)).toBe("admit over")
    capacity.isSpare = false
    const refused = await limiter.decide(ALICE)
    const peeked = await limiter.peek(ALICE)
    // Buckets refill between the two calls.
    if (!algorithm.endsWith("bucket"))
      expect(refused.checks[0]?.counts?.current).toBe(peeked.checks[0]?.counts?.current)
    // The refusal was a moment earlier, so its wait may be slightly longer.
    expect(refused.retryAfterMs).toBeGreaterThanOrEqual(peeked.retryAfterMs)
    expect(refused.retryAfterMs).toBeLessThan(peeked.retryAfterMs + 60_000)
  })
})

it("counts of an elastic rule without a ceiling outgrow the packed layout and stay exact", async () => {
  const [one] = processes(1, "sliding-window")
  if (one === undefined) throw new Error("there is no process")
  const { capacity, limiter } = one
  const most = 2 ** 20 - 1
  let units = 0
  for (const [isSpare, cost] of [
    [true, most],
    [false, 1],
    [true, 1],
    [true, most],
    [false, 3],
  ] as const) {
    capacity.isSpare = isSpare
    const { allowed } = await limiter.decide(ALICE, { cost })
    expect(allowed).toBe(isSpare)
    if (allowed) units += cost
    expect((await limiter.peek(ALICE)).checks[0]?.counts?.current).toBe(units)
  }
})
