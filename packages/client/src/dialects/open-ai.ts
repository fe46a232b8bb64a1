import { durationMs } from "../duration.ts"
import { type Dialect, numberIn, type Reading, readingsOf } from "../reading.ts"

/**
 * Reads OpenAI's `x-ratelimit-remaining-requests` and `-tokens`, whose resets are durations such as "6m0s". The tokens
 * of a call are not known before it, so the share of the tokens that is left counts as the same share of the requests.
 */
export const openAi: Dialect = (headers) => {
  const requests = readingsFor("requests", headers)
  const tokens = readingsFor("tokens", headers)
  return [...requests, ...tokens.map((reading) => sharedOut(reading, requests[0]?.quota))]
}

function readingsFor(unit: string, headers: Headers): readonly Reading[] {
  // -1 means that the server does not know, and numberIn takes no negative number.
  const remaining = numberIn(headers, `x-ratelimit-remaining-${unit}`)
  const resetMs = durationMs(headers.get(`x-ratelimit-reset-${unit}`) ?? "")
  return readingsOf(remaining, resetMs, numberIn(headers, `x-ratelimit-limit-${unit}`))
}

function sharedOut({ remaining, forMs, quota = remaining }: Reading, requests: number | undefined): Reading {
  if (requests === undefined) return { remaining, forMs, quota }
  return { remaining: Math.floor((remaining / Math.max(quota, 1)) * requests), forMs, quota: requests }
}
