import { createLimiter, memoryStore } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import type { Request } from "express"
import type { Redis } from "ioredis"
import { RateLimiterMemory, RateLimiterRedis, RLWrapperBlackAndWhite } from "rate-limiter-flexible"
import type { Response } from "../../../contracts/adapter/ask.ts"
import type { RedisForTests } from "../../../servers/redis-for-tests.ts"
import type { Pair } from "../pairs.ts"
import { closedClient } from "../redis.ts"
import { as, quiet, thenRefused, times, twice } from "../requests.ts"
import { after, before, consuming, userOf } from "./app.ts"

const listed = (
  options: Partial<ConstructorParameters<typeof RLWrapperBlackAndWhite>[0]>,
): Pair["before"] => {
  return () => {
    const limiter = new RateLimiterMemory({ points: 1, duration: 60 })
    return consuming(new RLWrapperBlackAndWhite({ limiter, ...options }))
  }
}
const friend = as("X-User", "friend")
const foe = as("X-User", "foe")

/**
 * Each option of rate-limiter-flexible that has a counterpart and needs no Redis, as a pair of apps with both
 * limiters.
 */
export const OPTIONS: Readonly<Record<string, Pair>> = {
  points: {
    before: before({ points: 3 }),
    after: after({ limit: 3 }),
    steps: ["/?cost=2", ...twice],
    expected: [200, ...thenRefused],
  },
  duration: {
    before: before({ duration: 120 }),
    after: after({ window: "120 seconds" }),
    steps: [...twice, 119_999, "/", 2, "/"],
    expected: [...thenRefused, 429, 200],
  },
  keyPrefix: {
    before: () => {
      const [login, search] = ["login", "search"].map(
        (keyPrefix) => new RateLimiterMemory({ points: 1, duration: 60, keyPrefix }),
      )
      return consuming(search as RateLimiterMemory, { "/login": () => login?.consume("somebody") })
    },
    after(clock) {
      const shared = { clock, store: memoryStore({ clock }) }
      const own = { limit: 1, window: "1 minute", field: "user", fields: { user: userOf } }
      const login = createLimiter<Request>({ ...shared, ...own, name: "login" })
      return after({ ...shared, name: "search" }, () => ({ "/login": (req) => login.decide(req) }))(clock)
    },
    steps: ["/login", ...twice],
    expected: [200, ...thenRefused],
  },
  blockDuration: {
    before: before({ blockDuration: 600 }),
    after: after({ penalty: { refusals: 1, for: "10 minutes" } }),
    steps: [...twice, 61_000, "/", 538_999, "/", 2, "/"],
    expected: [...thenRefused, 429, 429, 200],
  },
  whiteList: {
    before: listed({ whiteList: ["friend"] }),
    after: after({ allow: ["friend"] }),
    steps: [...times(3, friend), ...twice],
    expected: [200, 200, 200, ...thenRefused],
  },
  isWhiteListed: {
    before: listed({ isWhiteListed: (key: string) => key.startsWith("fr") }),
    after: after({ skip: (req) => req.get("x-user")?.startsWith("fr") ?? false }),
    steps: [...times(3, friend), ...twice],
    expected: [200, 200, 200, ...thenRefused],
  },
  blackList: {
    before: listed({ blackList: ["foe"] }),
    after: after({ deny: ["foe"] }),
    steps: [foe, "/"],
    expected: [429, 200],
  },
  isBlackListed: {
    before: listed({ isBlackListed: (key: string) => key === "foe" }),
    after: after({ limit: (req) => (req.get("x-user") === "foe" ? 0 : 1) }),
    steps: [foe, ...twice],
    expected: [429, ...thenRefused],
  },
}

const isBlocked = ({ status, headers }: Response): unknown => [
  status,
  Number(headers["x-wait-ms"] ?? Number(headers["retry-after"] ?? 0) * 1000) > 90_000_000,
]

/** Returns the pairs of options that need Redis. The window is long enough for a slow machine. */
export const redisOptions = (redis: RedisForTests): Readonly<Record<string, Pair>> => {
  const daily = { points: 1, duration: 86_400 }
  const shared = () =>
    ({
      ...{ service: "migrated", window: "1 day", storeTimeoutMs: 20_000, clock: undefined },
      store: redisStore({ client: redis.client }),
    }) as const
  const insured = (client: Redis) =>
    ({ service: "insured", store: redisStore({ client }), clock: undefined, logger: quiet }) as const
  return {
    storeClient: {
      before: () => consuming(new RateLimiterRedis({ ...daily, storeClient: redis.client })),
      after: (clock) => after(shared())(clock),
      steps: twice,
      expected: thenRefused,
    },
    blockOnConsumed: {
      before: () => {
        const block = { blockOnConsumed: 3, blockDuration: 10 * 86_400 }
        return consuming(new RateLimiterRedis({ ...daily, ...block, storeClient: redis.client }))
      },
      after: (clock) => after({ ...shared(), penalty: { refusals: 2, for: "10 days" } })(clock),
      steps: ["/", "/", "/", "/"],
      told: isBlocked,
      expected: [
        [200, false],
        [429, false],
        [429, true],
        [429, true],
      ],
    },
    insuranceLimiter: {
      async before() {
        const insuranceLimiter = new RateLimiterMemory(daily)
        const storeClient = await closedClient(redis)
        return consuming(new RateLimiterRedis({ ...daily, storeClient, insuranceLimiter }))
      },
      after: async (clock) =>
        after({ ...insured(await closedClient(redis)), onStoreFailure: "local" })(clock),
      steps: twice,
      expected: thenRefused,
    },
  }
}
