import type { IncomingHttpHeaders } from "node:http"

/** A number of seconds of at least this value is a date, not a delay. */
const EPOCH_SECONDS = 1_000_000_000

/**
 * Returns the milliseconds for which the headers ask a refused client to wait. Prefers `Retry-After` (RFC 9110,
 * section 10.2.3: whole seconds or a date), then the reset in the draft's field or in the older fields. Returns
 * undefined if no field is valid.
 */
export function toldWaitMs(headers: IncomingHttpHeaders, nowEpochMs: number): number | undefined {
  const retryAfter = headers["retry-after"]
  if (retryAfter !== undefined) {
    if (/^\d+$/.test(retryAfter)) return Number(retryAfter) * 1_000
    const date = /[a-z]/i.test(retryAfter) ? Date.parse(retryAfter) : Number.NaN
    if (!Number.isNaN(date)) return Math.max(0, date - nowEpochMs)
  }
  const effectiveWindow = /;\s*t=(\d+)/.exec(String(headers.ratelimit ?? ""))?.[1]
  const reset = effectiveWindow ?? headers["ratelimit-reset"] ?? headers["x-ratelimit-reset"]
  if (typeof reset !== "string" || !/^\d+$/.test(reset)) return undefined
  const seconds = Number(reset)
  return seconds >= EPOCH_SECONDS ? Math.max(0, seconds * 1_000 - nowEpochMs) : seconds * 1_000
}
