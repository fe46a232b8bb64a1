import { createLimiter, type Limiter } from "@sluice/core"
import type { LimiterSettings } from "@sluice/core/adapters"

/** Where and how a {@link SluiceThrottlerStorage} counts. All options are optional. */
export type ThrottlerStorageOptions = Pick<
  LimiterSettings<object>,
  "store" | "service" | "instances" | "storeTimeoutMs" | "logger" | "clock"
>

/** The result for a hit, as the guard of `@nestjs/throttler` needs it. */
export interface ThrottlerHit {
  /** The hits of the client, with the new one: at most the limit for an admitted hit. */
  readonly totalHits: number
  /** The seconds until all hits are available again. */
  readonly timeToExpire: number
  /** True if the hit is refused. */
  readonly isBlocked: boolean
  /** The seconds until a hit is admitted again; 0 for an admitted hit. */
  readonly timeToBlockExpire: number
}

interface HitOfThrottler {
  readonly key: string
  readonly throttler: string
  readonly ttl: number
  readonly limit: number
}

const LONGEST_MS = 366 * 86_400_000

/**
 * A `ThrottlerStorage` for `@nestjs/throttler` 6 that counts with Sluice. The guard, decorators and headers of
 * `@nestjs/throttler` stay the same. In an outage of the store, hits are counted in this process.
 * @example
 * ```ts
 * import { SluiceThrottlerStorage } from "@sluice/nestjs"
 * import { redisStore } from "@sluice/redis"
 * import { Redis } from "ioredis"
 *
 * const client = new Redis(process.env.REDIS_URL ?? "redis://localhost:6379")
 * const storage = new SluiceThrottlerStorage({ store: redisStore({ client }), service: "shop" })
 * ```
 */
export class SluiceThrottlerStorage {
  /** The limiter behind the storage, for its events and for `instrument` of `@sluice/otel`. */
  readonly limiter: Limiter<object>

  /** Creates the storage of an app. Throws {@link InvalidOptionError} for invalid options. */
  constructor(options: ThrottlerStorageOptions = {}) {
    this.limiter = createLimiter<object>({
      service: "nestjs-throttler",
      ...options,
      name: "throttler",
      field: ["key", "throttler"],
      fields: {
        key: (hit) => (hit as HitOfThrottler).key,
        throttler: (hit) => (hit as HitOfThrottler).throttler,
      },
      limit: (hit) => (hit as HitOfThrottler).limit,
      window: (hit) => (hit as HitOfThrottler).ttl,
    })
  }

  /**
   * Counts a hit. A client over its limit is blocked for `blockDuration`, and afterwards until its hits fit the limit.
   * Times are in milliseconds.
   */
  async increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttler: string,
  ): Promise<ThrottlerHit> {
    const hit: HitOfThrottler = { key, throttler, ttl: lasting(ttl), limit: Math.max(0, Math.floor(limit)) }
    const decision = await this.limiter.decide(hit)
    const timeToExpire = seconds(decision.resetAfterMs)
    // Without a limit, nothing is counted.
    const totalHits = decision.limit - decision.remaining || 1
    if (decision.allowed) return { totalHits, timeToExpire, isBlocked: false, timeToBlockExpire: 0 }
    const isOverLimit = decision.refusal === "quota" && blockDuration > 0
    const isBlocked = isOverLimit && (await this.#block(hit, blockDuration))
    // A limit of 0 never admits a hit, but the guard sends the wait as Retry-After.
    const waitMs = Math.min(decision.retryAfterMs, LONGEST_MS)
    const timeToBlockExpire = seconds(isBlocked ? Math.max(waitMs, blockDuration) : waitMs)
    return { totalHits: hit.limit + 1, timeToExpire, isBlocked: true, timeToBlockExpire }
  }

  /** Returns whether the client is blocked now. While the store fails, only the limit refuses the client. */
  #block(hit: HitOfThrottler, ms: number): Promise<boolean> {
    return this.limiter.block(hit, { for: lasting(ms) }).then(
      () => true,
      () => false,
    )
  }

  /** Closes the limiter. Nest calls this when the app closes. The app must close the store that it has passed. */
  async onApplicationShutdown(): Promise<void> {
    await this.limiter.close()
  }
}

/** Returns a length that a limiter accepts: in whole milliseconds, 1 or more. */
function lasting(ms: number): number {
  return Math.min(LONGEST_MS, Math.max(1, Math.round(ms)))
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1_000)
}
