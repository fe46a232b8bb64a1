import { AsyncLocalStorage } from "node:async_hooks"
import { inspect } from "node:util"
import { type Decision, InvalidOptionError, type Limiter, memoryStore, type Store } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import type { ClientRateLimitInfo, Store as ExpressRateLimitStore, Options } from "express-rate-limit"
import { checkCounting, createCounter, knownLimit, type LimiterFacts } from "./counter.ts"
import { hitsBefore, hitsOf } from "./hits.ts"
import { type ParsedStoreOptions, parseOptions, type SluiceStoreOptions } from "./options.ts"
import { claimPrefix, releasePrefix } from "./prefix-claims.ts"
import { undoHit } from "./undo-hit.ts"

/** The hit of a request in progress. */
interface Hit {
  readonly key: string
  /** Absent until the hit is counted. */
  decision?: Decision
}

/** The options that a store reads. Before version 7, the limit is named `max`. Before 8.6, there is no logger. */
type PeerOptions = Pick<Options, "windowMs" | "skipFailedRequests" | "skipSuccessfulRequests"> &
  Partial<Pick<Options, "limit" | "logger">> & { readonly max?: Options["limit"] }

const NOT_INITIALIZED = new InvalidOptionError([
  {
    path: "store",
    message: "was used before it was passed to rateLimit()",
    accepted: "rateLimit({ store })",
  },
])

/**
 * A store for express-rate-limit that counts with Sluice. Headers, responses and all other options of
 * express-rate-limit stay the same. In an outage of Redis, hits are counted in this process.
 * @example
 * ```ts
 * import { SluiceStore } from "@sluice/express-rate-limit-store"
 * import { rateLimit } from "express-rate-limit"
 * import { Redis } from "ioredis"
 *
 * const client = new Redis(process.env.REDIS_URL ?? "redis://localhost:6379")
 * const limiter = rateLimit({ limit: 100, windowMs: 60_000, store: new SluiceStore({ client }) })
 * ```
 */
export class SluiceStore implements ExpressRateLimitStore {
  /** True if the counters are in the memory of this process, so no other store counts the same hits. */
  readonly localKeys: boolean
  /** The option `prefix`. express-rate-limit needs it to detect that a request is counted twice. */
  readonly prefix: string
  readonly #options: ParsedStoreOptions
  readonly #store: Store
  /** The client or store on which the prefix is claimed. */
  readonly #place: object
  #facts: LimiterFacts | undefined
  #counter: Limiter<string> | InvalidOptionError = NOT_INITIALIZED
  /** Provides the hit of the request in progress. Undefined if express-rate-limit never undoes a hit. */
  #hits: AsyncLocalStorage<Hit> | undefined

  /**
   * Creates the store of one limiter.
   * @throws {@link InvalidOptionError} with everything that is wrong with the options, and if another store uses the same
   * prefix with the same `client` or `store`
   */
  constructor(options: SluiceStoreOptions = {}) {
    this.#options = parseOptions(options)
    checkCounting(this.#options)
    const { client, store, prefix } = this.#options
    this.prefix = prefix
    this.#store = client === undefined ? (store ?? memoryStore()) : redisStore({ client, prefix })
    this.localKeys = this.#store.isShared === false
    this.#place = client ?? this.#store
    claimPrefix(this.#place, prefix, this)
  }

  /**
   * The limiter behind the store, for its events and for `instrument` of `@sluice/otel`. The limiter takes keys as
   * requests.
   * @throws {@link InvalidOptionError} if the store has not been passed to `rateLimit` yet, or if that has failed
   */
  get limiter(): Limiter<string> {
    if (this.#counter instanceof InvalidOptionError) throw this.#counter
    return this.#counter
  }

  /**
   * Called by `rateLimit` with its options. A store that several limiters share counts the hits of all these limiters
   * together. `windowMs` is rounded to whole milliseconds, because 8.2 minutes, for example, are computed as
   * 492000.00000000006 ms.
   * @throws {@link InvalidOptionError} for options that contradict each other. Each request fails with the same error.
   */
  init(options: Options): void {
    const read: PeerOptions = options
    if (read.skipFailedRequests || read.skipSuccessfulRequests) this.#hits ??= createContext()
    const { logger } = read
    const windowMs = wholeMs(read.windowMs)
    const known = knownLimit(read.limit ?? read.max)
    const before = this.#facts
    if (before !== undefined && before.windowMs === windowMs && before.limit === known) return
    try {
      if (typeof windowMs !== "number") throw notMilliseconds(windowMs)
      if (before !== undefined && before.windowMs !== windowMs)
        throw severalWindows(before.windowMs, windowMs)
      if (!(this.#counter instanceof InvalidOptionError)) void this.#counter.close()
      // If limiters with different limits share this store, count every hit, because each limiter compares the count
      // with its own limit.
      this.#facts = { windowMs, limit: before === undefined ? known : undefined, logger }
      this.#counter = createCounter(this.#options, this.#store, this.#facts)
    } catch (error) {
      // Remember the error, because express-rate-limit logs it and continues.
      this.#counter = error as InvalidOptionError
      throw error
    }
  }

  /**
   * Counts a hit, and returns the client's hits including the new one. Rejects only if the store is closed, has not
   * been passed to `rateLimit`, or has invalid options.
   */
  async increment(key: string): Promise<ClientRateLimitInfo> {
    const hits = this.#hits
    if (hits === undefined) return hitsOf(await this.limiter.decide(key), false)
    const hit: Hit = { key }
    // The caller continues in this asynchronous context, in which it later calls `decrement`. The caller passes only
    // the key, which does not reveal whether the request was admitted.
    hits.enterWith(hit)
    hit.decision = await this.limiter.decide(key)
    return hitsOf(hit.decision, true)
  }

  /**
   * Undoes the hit of the request in progress, once. Undoing a refused request is a no-op, because nothing was taken.
   * If the app calls `decrement` outside of a request, one hit is removed from the current count.
   *
   * Rejects with {@link StoreUnavailableError} if Redis fails, which express-rate-limit logs.
   */
  async decrement(key: string): Promise<void> {
    const hit = this.#hits?.getStore()
    if (hit?.key === key && hit.decision !== undefined) await this.limiter.refund(hit.decision)
    else await undoHit(this.limiter, this.#store, key)
  }

  /** Returns the client's current hits and their reset time; undefined if there are no hits. Counts nothing. */
  async get(key: string): Promise<ClientRateLimitInfo | undefined> {
    return hitsBefore(await this.limiter.peek(key))
  }

  /** Deletes the client's hits. Rejects with {@link StoreUnavailableError} if Redis fails. */
  resetKey(key: string): Promise<void> {
    const done = this.limiter.reset(key)
    // Few callers wait for the result, and an unhandled rejection would end the process.
    done.catch(() => {})
    return done
  }

  /** Stops counting and frees the prefix. The app must close the client or the store that it has passed. */
  async shutdown(): Promise<void> {
    releasePrefix(this.#place, this.prefix, this)
    if (!(this.#counter instanceof InvalidOptionError)) await this.#counter.close()
    if (this.#store !== this.#options.store) await this.#store.close()
  }
}

function createContext(): AsyncLocalStorage<Hit> {
  const hits = new AsyncLocalStorage<Hit>()
  // Use the context before the first request, because Node 20 and 22 only track promises that are created after the
  // first use.
  hits.run({ key: "" }, () => {})
  return hits
}

/** Rounds a positive time to whole milliseconds, but to at least 1 ms. Returns other values unchanged. */
function wholeMs(windowMs: number): number {
  return Number.isFinite(windowMs) && windowMs > 0 ? Math.max(1, Math.round(windowMs)) : windowMs
}

function notMilliseconds(windowMs: unknown): InvalidOptionError {
  const message = `${inspect(windowMs, { depth: 0 })} is not a window of express-rate-limit`
  return new InvalidOptionError([{ path: "windowMs", message, accepted: "a number of milliseconds" }])
}

function severalWindows(first: number, other: number): InvalidOptionError {
  const message = `${other} is not the window of the other limiter with this store, which is ${first}`
  return new InvalidOptionError([{ path: "windowMs", message, accepted: "a SluiceStore for each limiter" }])
}
