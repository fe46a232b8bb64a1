import { inspect } from "node:util"
import { InvalidOptionError, type Problem, type Store } from "@sluice/core"
import type { LimiterSettings } from "@sluice/core/adapters"
import type { RedisClient } from "@sluice/redis"

/** Where and how a {@link SluiceStore} counts. All options are optional. */
export interface SluiceStoreOptions
  extends Pick<
    LimiterSettings<string>,
    "align" | "buckets" | "burst" | "refill" | "countRejected" | "penalty" | "instances" | "storeTimeoutMs"
  > {
  /**
   * A client that `redisStore` accepts, for one server or a cluster. The app connects and closes the client. Without a
   * client, hits are counted in the memory of this process.
   */
  readonly client?: RedisClient | undefined
  /** A store of `@sluice/core` to use instead of `client`, such as `memoryStore({ maxKeys })`. The app closes it. */
  readonly store?: Store | undefined
  /**
   * Separates the counters of this limiter from the counters of other limiters in the same Redis or store. Each
   * limiter needs its own prefix, such as "login:". With `client`, keys in Redis begin with the prefix. Default:
   * "rl:".
   */
  readonly prefix?: string | undefined
  /**
   * How hits are counted. Default: "sliding-window". If `limit` is a function, the default is "fixed-window" from a
   * client's first hit.
   */
  readonly algorithm?: Exclude<LimiterSettings<string>["algorithm"], "leaky-bucket">
  /**
   * The largest number that `limit` returns if it is a function. Hits above this number are refused from a cache,
   * without a call of Redis. If it is not set, every hit is counted.
   */
  readonly largestLimit?: number | undefined
}

/** The options with their defaults. */
export interface ParsedStoreOptions {
  readonly client: RedisClient | undefined
  readonly store: Store | undefined
  readonly prefix: string
  readonly largestLimit: number | undefined
  /** The options that are passed to the limiter. */
  readonly counting: Omit<SluiceStoreOptions, "client" | "store" | "prefix" | "largestLimit">
}

const NAMES = [
  ...["client", "store", "prefix", "algorithm", "align", "buckets", "burst", "refill", "countRejected"],
  ...["penalty", "largestLimit", "instances", "storeTimeoutMs"],
]
/** Options of rate-limit-redis and express-rate-limit, with advice on what to use instead. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  sendCommand: 'use "client" instead',
  sendCommandCluster: 'use "client" instead',
  limit: "leave it in rateLimit({ … })",
  windowMs: "leave it in rateLimit({ … })",
  logger: "leave it in rateLimit({ … })",
}
/** Matches the names that are valid both for a rule and as the prefix of a Redis key. */
const PREFIX = /^[ !#-[\]-z|~]{1,64}$/

/**
 * Returns the options with their defaults. The limiter checks `counting`.
 * @throws {@link InvalidOptionError} with all problems
 */
export function parseOptions(options: SluiceStoreOptions): ParsedStoreOptions {
  if (typeof options !== "object" || options === null || "duplicate" in options) {
    // Do not show a URL or a client, because it may contain a password.
    const message = "is not an options object, but a client or another value"
    throw new InvalidOptionError([{ path: "", message, accepted: "new SluiceStore({ client, prefix })" }])
  }
  const { client, store, prefix = "rl:", largestLimit, ...counting } = options
  const problems = Object.keys(counting).flatMap((path): Problem[] => {
    if (NAMES.includes(path)) return []
    const hint = Object.hasOwn(ELSEWHERE, path) ? `; ${ELSEWHERE[path]}` : ""
    return [{ path, message: `is not an option of SluiceStore${hint}`, accepted: NAMES.join(", ") }]
  })
  const check = (path: string, isValid: boolean, message: string, accepted: string): void => {
    if (!isValid) problems.push({ path, message, accepted })
  }
  check(
    "store",
    client === undefined || store === undefined,
    "is given besides client",
    "only one of the two",
  )
  check(
    "prefix",
    typeof prefix === "string" && PREFIX.test(prefix),
    `${inspect(prefix, { depth: 0 })} is not a valid prefix`,
    "1 to 64 printable ASCII characters, except quotes, backslashes and braces",
  )
  check(
    "largestLimit",
    largestLimit === undefined || (Number.isSafeInteger(largestLimit) && largestLimit > 0),
    `${inspect(largestLimit, { depth: 0 })} is not a valid limit`,
    "a positive whole number",
  )
  // Reject a leaky bucket, because express-rate-limit cannot hold requests.
  const isLeaky = (counting.algorithm as string | undefined) === "leaky-bucket"
  check(
    "algorithm",
    !isLeaky,
    '"leaky-bucket" holds requests, and express-rate-limit cannot',
    "another algorithm",
  )
  if (problems.length > 0) throw new InvalidOptionError(problems)
  return { client, store, prefix, largestLimit, counting }
}
