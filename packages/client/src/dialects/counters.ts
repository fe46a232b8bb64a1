import { type Dialect, msUntil, numberOf, readingsOf, valuesIn } from "../reading.ts"
import { membersOf } from "./rate-limit.ts"

/**
 * Reads the fields `limit`, `remaining` and `reset`, whose headers have the names that `nameOf` returns:
 * `RateLimit-*` of the drafts up to 6, and `X-RateLimit-*` of GitHub, Discord and many others. Discord's
 * `reset-after` is more exact than `reset`, so it is preferred. The window is that of the policy with the same limit, as
 * in `RateLimit-Policy: 100;w=60` of draft 6. Returns one reading for each server that has added its fields.
 */
export function counters(nameOf: (field: string) => string): Dialect {
  return (headers, nowMs) => {
    const [remaining = [], limit = [], reset = [], after = reset] = [
      "remaining",
      "limit",
      "reset",
      "reset-after",
    ].map((field) => valuesIn(headers, nameOf(field)))
    const windows = new Map(
      membersOf(headers, nameOf("policy")).map(([quota, policy]) => [numberOf(quota), policy.get("w")]),
    )
    const resets = after.length > 0 ? after : reset
    return remaining.flatMap((text, index) => {
      const quota = numberOf(limit[index])
      const forMs = msUntil(resets[index] ?? resets[0], nowMs)
      return readingsOf(numberOf(text), forMs, quota, numberOf(windows.get(quota)) * 1_000)
    })
  }
}
