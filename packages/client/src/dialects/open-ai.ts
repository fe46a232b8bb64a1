import { durationMs } from "../duration.ts"
import { type Dialect, numberIn, type Reading, readingOf } from "../reading.ts"

/**
 * Reads OpenAI's `x-ratelimit-remaining-requests` and `-tokens`, whose resets are durations such as "6m0s". The tokens
 * of a call are not known before it, so the share of the tokens that is left counts as the same share of the requests.
 */
export const openAi: Dialect = (headers) => {
  const requests = readingFor("requests", headers)
  const tokens = readingFor("tokens", headers)
  const limited = [requests, tokens && sharedOut(tokens, requests?.quota)].filter(
    (reading) => reading !== undefined,
  )
  return limited.length > 0 ? limited : undefined
}

function readingFor(unit: string, headers: Headers): Reading | undefined {
  // -1 means that the server does not know, and numberIn takes no negative number.
  const remaining = numberIn(headers, `x-ratelimit-remaining-${unit}`)
  const resetMs = durationMs(headers.get(`x-ratelimit-reset-${unit}`) ?? "")
  return readingOf(remaining, resetMs, numberIn(headers, `x-ratelimit-limit-${unit}`))
}

function sharedOut({ remaining, forMs, quota = remaining }: Reading, requests: number | undefined): Reading {
  if (requests === undefined) return { remaining, forMs, quota }
  return { remaining: Math.floor((remaining / Math.max(quota, 1)) * requests), forMs, quota: requests }
}
