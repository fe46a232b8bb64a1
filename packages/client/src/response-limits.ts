import { DIALECTS } from "./dialects/dialects.ts"
import { DAY_MS, dateMs, inRange, msUntil, numberIn, numberOf, type Reading, valuesIn } from "./reading.ts"

/** The information in the head of a response about the quotas of its call. */
export interface ResponseLimits {
  /** The name of the dialect of the fields. Undefined if the response contains no such fields. */
  readonly dialect: string | undefined
  /** The quotas. There is at least one quota if there is a dialect. */
  readonly readings: readonly Reading[]
  /** True if the call was not processed, because a limit was reached or the server is overloaded. */
  readonly isRefused: boolean
  /**
   * The minimum wait in milliseconds before another call. Undefined unless the call was refused with a response that
   * contains this wait.
   */
  readonly waitMs: number | undefined
  /**
   * Stripe's advice about another attempt, `Stripe-Should-Retry`: "true" or "false". Null if the response contains no
   * advice.
   */
  readonly shouldRetry: string | null
}

/**
 * The limits of an origin that redirected a call. These limits are unknown, because a fetch does not return the
 * response of a redirect.
 */
export const SAYS_NOTHING: ResponseLimits = {
  ...{ dialect: undefined, readings: [], isRefused: false, waitMs: undefined, shouldRetry: null },
}

/**
 * The wait after a refusal by a secondary limit of GitHub that contains no wait. Source: GitHub's best practices for
 * its REST API.
 */
const GITHUB_SECONDARY_MS = 60_000

/** Reads the head of a response. */
export function readLimits({ status, headers }: Response): ResponseLimits {
  // Compare an instant with the server's own clock, because the clock of this machine may be wrong.
  const nowMs = dateMs(headers.get("date") ?? "") || Date.now()
  let dialect: string | undefined
  let readings: readonly Reading[] = []
  // A cached response contains nothing about the current units (draft-ietf-httpapi-ratelimit-headers-11, section 4).
  for (const [name, read] of numberIn(headers, "age") > 0 ? [] : Object.entries(DIALECTS)) {
    const found = read(headers, nowMs)
    if (found.length === 0) continue
    dialect = name
    readings = found
    break
  }
  const asked = retryAfterMs(headers, nowMs)
  const resets = readings.filter(({ remaining }) => remaining < 1).map(({ forMs }) => forMs)
  const untilReset = resets.length > 0 ? Math.max(...resets) : undefined
  const isGitHub = headers.has("x-github-request-id")
  const isRefused =
    status === 429 ||
    (status === 503 && asked !== undefined) ||
    (status === 403 && isGitHub && (asked ?? untilReset) !== undefined)
  return {
    dialect,
    readings,
    isRefused,
    waitMs: isRefused ? (asked ?? untilReset ?? (isGitHub ? GITHUB_SECONDARY_MS : undefined)) : undefined,
    shouldRetry: headers.get("stripe-should-retry"),
  }
}

/**
 * Returns the wait in `retry-after-ms`, which OpenAI and Azure send, or in `Retry-After` (RFC 9110, section 10.2.3).
 * A proxy may have added a second value, so the longest one counts. Returns undefined if no value makes sense.
 */
function retryAfterMs(headers: Headers, nowMs: number): number | undefined {
  const ms = ["retry-after-ms", "x-ms-retry-after-ms"].map((name) => numberIn(headers, name))
  const waits = valuesIn(headers, "retry-after").map((text) => {
    const waitMs = msUntil(text, nowMs)
    // If a positive number would be an instant in the distant past, it is a very long wait in seconds.
    return waitMs < -DAY_MS && numberOf(text) > 0 ? numberOf(text) * 1_000 : waitMs
  })
  const [longestMs] = waits.filter((waitMs) => !Number.isNaN(waitMs)).sort((a, b) => b - a)
  const asked = ms.find((wait) => wait >= 0) ?? longestMs
  return asked === undefined ? undefined : inRange(asked)
}
