import { type Clock, createLimiter, type Decision, type Limiter, type Rule } from "@sluice/core"
import { CallRefused } from "./visit.ts"

/**
 * The searches and changes of all visitors. A search reads at most 20 counters, so that one address causes at most 40
 * reads a second, and all visitors 200. Bursts may be larger, because people search several times in a row.
 */
export const PACE: readonly Rule[] = [
  { name: "address", field: "ip", algorithm: "token-bucket", limit: 2, burst: 20, window: "1 second" },
  { name: "page", field: "service", algorithm: "token-bucket", limit: 10, burst: 50, window: "1 second" },
]

/** Creates a limiter for the page's own requests. It counts in memory, also in a worker of a cluster, without a warning. */
export function pageLimiter(rules: readonly Rule[], clock: Clock): Limiter {
  return createLimiter({ rules: [...rules], clock, service: "dashboard", logger: { warn() {}, error() {} } })
}

/** Returns the refusal of a request that comes too early. `what` is what there were too many of. */
export function tooMany(what: string, { retryAfterMs }: Decision): CallRefused {
  const seconds = String(Math.ceil(retryAfterMs / 1_000))
  return new CallRefused(429, `There were too many ${what}. Try again in ${seconds} s.`, {
    "retry-after": seconds,
  })
}
