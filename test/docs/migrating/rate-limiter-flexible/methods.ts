import type { Decision, Limiter } from "@sluice/core"
import type { Request } from "express"
import {
  BurstyRateLimiter,
  RateLimiterMemory,
  RateLimiterQueue,
  RateLimiterUnion,
  RLWrapperTimeouts,
} from "rate-limiter-flexible"
import type { Pair } from "../pairs.ts"
import { as, thenRefused, times, twice } from "../requests.ts"
import { after, before, type Calls, consuming } from "./app.ts"

/** Like `after`, for calls that need the last decision. An app would store the decision with the request or the job. */
const withLast = (
  options: Parameters<typeof after>[0],
  callsOf: (limiter: Limiter<Request>, last: () => Decision) => Calls,
): Pair["after"] =>
  after(options, (limiter) => {
    const decisions: Decision[] = []
    limiter.on("decision", (decision) => void decisions.push(decision))
    return callsOf(limiter, () => decisions.at(-1) as Decision)
  })

/** Each method and each class that has a counterpart, as a pair of apps with both limiters. */
export const METHODS: Readonly<Record<string, Pair>> = {
  consume: {
    before: before({ points: 3 }),
    after: after({ limit: 3 }),
    steps: ["/?cost=2", as("X-User", "another"), ...twice],
    expected: [200, 200, ...thenRefused],
  },
  penalty: {
    before: before({ points: 5 }, (limiter) => ({ "/wrong": () => limiter.penalty("somebody", 2) })),
    after: withLast({ limit: 5 }, (limiter, last) => ({ "/wrong": () => limiter.settle(last(), 3) })),
    steps: ["/", "/wrong", "/", ...twice],
    expected: [200, 200, 200, ...thenRefused],
  },
  reward: {
    before: before({}, (limiter) => ({ "/right": () => limiter.reward("somebody") })),
    after: withLast({}, (limiter, last) => ({ "/right": () => limiter.refund(last()) })),
    steps: ["/", "/right", ...twice],
    expected: [200, 200, ...thenRefused],
  },
  get: {
    before: before({ points: 3 }, (limiter) => ({
      "/left": async () => (await limiter.get("somebody"))?.remainingPoints ?? 3,
    })),
    after: after({ limit: 3 }, (limiter) => ({
      "/left": async (req) => (await limiter.peek(req)).remaining,
    })),
    steps: ["/left", "/", "/left", "/left"],
    told: ({ body }) => body,
    expected: ["3", "ok", "2", "2"],
  },
  delete: {
    before: before({}, (limiter) => ({ "/forget": () => limiter.delete("somebody") })),
    after: after({}, (limiter) => ({ "/forget": (req) => limiter.reset(req) })),
    steps: [...twice, "/forget", ...twice],
    expected: [...thenRefused, 200, ...thenRefused],
  },
  block: {
    before: before({}, (limiter) => ({ "/lock": () => limiter.block("somebody", 600) })),
    after: after({}, (limiter) => ({ "/lock": (req) => limiter.block(req, { for: "10 minutes" }) })),
    steps: ["/lock", "/", 599_999, "/", 2, ...twice],
    expected: [200, 429, 429, ...thenRefused],
  },
  getTokensRemaining: {
    before: before({ points: 3 }, (limiter) => {
      const queue = new RateLimiterQueue(limiter)
      return { "/left": () => queue.getTokensRemaining("somebody") }
    }),
    after: after({ limit: 3 }, (limiter) => ({
      "/left": async (req) => (await limiter.peek(req)).remaining,
    })),
    steps: ["/", "/left"],
    told: ({ body }) => body,
    expected: ["ok", "2"],
  },
  removeTokens: {
    before: before({ points: 3 }, (limiter) => {
      const queue = new RateLimiterQueue(limiter)
      return { "/wait": () => queue.removeTokens(2, "somebody") }
    }),
    after: after({ limit: 3 }, (limiter) => ({
      "/wait": async (req) => (await limiter.acquire(req, { cost: 2 })).remaining,
    })),
    steps: ["/wait", ...twice],
    told: ({ status, body }) => [status, status === 200 ? body : ""],
    expected: [
      [200, "1"],
      [200, "ok"],
      [429, ""],
    ],
  },
  RateLimiterUnion: {
    before() {
      const minute = new RateLimiterMemory({ keyPrefix: "minute", points: 2, duration: 60 })
      const hour = new RateLimiterMemory({ keyPrefix: "hour", points: 3, duration: 3600 })
      return consuming(new RateLimiterUnion(minute, hour))
    },
    after: after({
      rules: [
        { field: "user", limit: 2, window: "1 minute" },
        { field: "user", limit: 3, window: "1 hour" },
      ],
    }),
    steps: ["/", "/", 121_000, "/", "/"],
    expected: [200, 200, 200, 429],
  },
  BurstyRateLimiter: {
    before() {
      const even = new RateLimiterMemory({ keyPrefix: "even", points: 1, duration: 1 })
      const burst = new RateLimiterMemory({ keyPrefix: "burst", points: 4, duration: 10 })
      return consuming(new BurstyRateLimiter(even, burst))
    },
    after: after({ algorithm: "token-bucket", limit: 1, window: "1 second", burst: 5 }),
    steps: [...times(6, "/"), 10_001, ...times(6, "/")],
    expected: [...times(5, 200), 429, ...times(5, 200), 429],
  },
  RLWrapperTimeouts: {
    before: () =>
      consuming(
        new RLWrapperTimeouts({
          limiter: new RateLimiterMemory({ points: 1, duration: 60 }),
          timeoutMs: 10_000,
        }),
      ),
    after: after({ storeTimeoutMs: 10_000 }),
    steps: twice,
    expected: thenRefused,
  },
}
