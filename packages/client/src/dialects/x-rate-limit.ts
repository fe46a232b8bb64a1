import { type Dialect, numberIn, readingsOf } from "../reading.ts"

/** Any time in seconds below this one is a duration, and any other one an instant: 2001 in seconds, 11,574 days. */
const LEAST_EPOCH_SECONDS = 1e9
const LEAST_EPOCH_MS = 1e12

/**
 * Reads `X-RateLimit-Limit`, `-Remaining` and `-Reset`, of GitHub, Discord and many others. The reset is
 * in epoch seconds, epoch milliseconds or seconds from now, which differ by their size. Discord's
 * `X-RateLimit-Reset-After` is exact, so it comes first.
 */
export const xRateLimit: Dialect = (headers, nowMs) => {
  const read = (name: string): number => numberIn(headers, `x-ratelimit-${name}`)
  const after = read("reset-after") * 1000
  const forMs = Number.isNaN(after) ? msUntil(read("reset"), nowMs) : after
  return readingsOf(read("remaining"), forMs, read("limit"))
}

function msUntil(reset: number, nowMs: number): number {
  if (!(reset >= LEAST_EPOCH_SECONDS)) return reset * 1000
  return Math.max(0, (reset >= LEAST_EPOCH_MS ? reset : reset * 1000) - nowMs)
}
