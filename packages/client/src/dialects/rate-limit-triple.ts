import { type Dialect, numberIn, readingsOf } from "../reading.ts"

/** Reads `RateLimit-Limit`, `-Remaining` and `-Reset` of the drafts up to 6. `Reset` is in seconds from now. */
export const rateLimitTriple: Dialect = (headers) => {
  const remaining = numberIn(headers, "ratelimit-remaining")
  const resetMs = numberIn(headers, "ratelimit-reset") * 1000
  // In draft 6, policies may follow the limit: "100, 100;w=60".
  const limit = Number.parseInt(headers.get("ratelimit-limit") ?? "", 10)
  return readingsOf(remaining, resetMs, limit)
}
