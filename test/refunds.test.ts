import { createLimiter, type Decision, memoryStore, type Store } from "@sluice/core"
import type { RateRule } from "@sluice/core/adapters"
import { createGuard } from "@sluice/core/adapters"
import { manualClock } from "@sluice/core/testing"
import { redisStore } from "@sluice/redis"
import { afterAll, describe, expect, it } from "vitest"
import { keysWithoutTtl } from "./redis/counted.ts"
import { redisForTests } from "./servers/redis-for-tests.ts"
import { until } from "./servers/until.ts"

// Outcome-based refunds. Units are refunded depending on the response, for every algorithm and in both stores.

const KINDS: [string, Partial<RateRule>][] = [
  ["sliding-window", {}],
  ["sliding-window with buckets", { buckets: 6 }],
  ["sliding-window-strict", { algorithm: "sliding-window-strict" }],
  ["sliding-log", { algorithm: "sliding-log" }],
  ["fixed-window", { algorithm: "fixed-window" }],
  ["fixed-window, first hit", { algorithm: "fixed-window", align: "first-hit" }],
  ["token-bucket", { algorithm: "token-bucket" }],
  ["token-bucket with a burst", { algorithm: "token-bucket", limit: 2, burst: 5 }],
  ["token-bucket, periodic", { algorithm: "token-bucket", refill: "periodic" }],
  ["leaky-bucket", { algorithm: "leaky-bucket", throttle: "hard" }],
  ["a soft limit", { limit: 4, throttle: { kind: "soft", percent: 25 } }],
  ["an elastic limit", { limit: 4, throttle: { kind: "elastic", ceiling: 5, signal: () => true } }],
]
/** The number of requests that each kind admits in one burst. */
const MOST = 5
const MINUTE = 60_000
const QUIET = { warn() {}, error() {} }

const { server, client } = await redisForTests()
let made = 0
afterAll(async () => {
  expect(await keysWithoutTtl(server)).toEqual([])
})

type Clock = ReturnType<typeof manualClock>

const STORES: [string, (clock: Clock) => Store][] = [
  ["memory", (clock) => memoryStore({ clock })],
  ["Redis", (clock) => redisStore({ client, clock, prefix: `refund${made++}:`, timeoutMs: 20_000 })],
]

describe.each(STORES)("a limiter with counters in %s", (_store, open) => {
  describe.each(KINDS)("under %s", (_kind, rule) => {
    /** Creates a guard that refunds every response below 400, and its limiter. */
    function setUp() {
      const clock = manualClock()
      const limiter = createLimiter<object>({
        rules: [{ name: "r", field: "service", limit: MOST, window: MINUTE, ...rule }],
        service: "refunds",
        store: open(clock),
        storeTimeoutMs: 20_000,
        refundWhen: (_request, status) => status < 400,
        clock,
        logger: QUIET,
      })
      const guard = createGuard<object>({ limiter })
      /**
       * Sends concurrent requests. Resolves to the decisions on the requests, and to functions that respond to the
       * requests.
       */
      const ask = async (count: number) => {
        const asked = Array.from({ length: count }, async () => {
          const request = {}
          const { decision } = await guard.check({}, request)
          return { decision, respond: (status: number) => guard.reportStatus(request, status) }
        })
        return Promise.all(asked)
      }
      /** Returns the number of units that would be admitted now, without taking any. */
      const room = async () => {
        for (let cost = MOST; cost > 0; cost--) if ((await limiter.peek({}, { cost })).allowed) return cost
        return 0
      }
      return { clock, limiter, ask, room }
    }
    const admitted = (all: readonly { readonly decision: Decision }[]) =>
      all.filter(({ decision }) => decision.allowed).length

    it("charges parallel guesses first, and refunds the units of successful guesses after the response", async () => {
      const { ask, room } = setUp()
      const guesses = await ask(20)
      expect(admitted(guesses)).toBe(MOST)
      expect(await room()).toBe(0)
      // Two of the admitted guesses were correct.
      const let_in = guesses.filter(({ decision }) => decision.allowed)
      for (const [i, { respond }] of let_in.entries()) respond(i < 2 ? 200 : 401)
      // Refused requests took no units, so none are refunded.
      for (const { decision, respond } of guesses) if (!decision.allowed) respond(200)
      await until("two units are back", async () => (await room()) === 2)
      expect(admitted(await ask(20))).toBe(2)
    })

    it("admits a client immediately after its units are refunded, even if the client has just been refused", async () => {
      const { ask, limiter } = setUp()
      const taken = await ask(MOST)
      expect(admitted(await ask(1))).toBe(0)
      const [one] = taken
      if (one === undefined) throw new Error("nobody was answered")
      await limiter.refund(one.decision)
      expect(admitted(await ask(2))).toBe(1)
    })
  })
})
