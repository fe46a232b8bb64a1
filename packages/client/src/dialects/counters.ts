import { type Dialect, msUntil, numberOf, readingsOf, valuesIn } from "../reading.ts"

/**
 * Reads the fields `limit`, `remaining` and `reset`, whose headers have the names that `nameOf` returns:
 * `RateLimit-*` of the drafts up to 6, and `X-RateLimit-*` of GitHub, Discord and many others. Discord's
 * `reset-after` is more exact than `reset`, so it is preferred. Returns one reading for each server that has added
 * its fields.
 */
export function counters(nameOf: (field: string) => string): Dialect {
  return (headers, nowMs) => {
    const [remaining = [], limit = [], reset = [], after = reset] = [
      "remaining",
      "limit",
      "reset",
      "reset-after",
    ].map((field) => valuesIn(headers, nameOf(field)))
    const resets = after.length > 0 ? after : reset
    return remaining.flatMap((text, index) =>
      readingsOf(numberOf(text), msUntil(resets[index] ?? resets[0], nowMs), numberOf(limit[index])),
    )
  }
}
