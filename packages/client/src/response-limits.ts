import { DIALECTS } from "./dialects/dialects.ts"
import { LONGEST_MS, numberIn, numberOf, type Reading } from "./reading.ts"

/** What the head of a response says about the quotas of its call. */
export interface ResponseLimits {
  /** The name of the dialect that the fields are in. Undefined if the response has none. */
  readonly dialect: string | undefined
  /** The quotas, at least one if there is a dialect. */
  readonly readings: readonly Reading[]
  /** True if the call was not processed, because a limit was reached or the server is overloaded. */
  readonly isRefused: boolean
  /** The least milliseconds until another call may be sent. Undefined unless the call was refused and the server says it. */
  readonly waitMs: number | undefined
  /** Stripe's advice about another attempt, `Stripe-Should-Retry`: "true" or "false". Null if there is none. */
  readonly shouldRetry: string | null
}

/** The wait after a secondary limit of GitHub that names none. Source: GitHub's best practices for its REST API. */
const GITHUB_SECONDARY_MS = 60_000

/** Reads the head of a response. */
export function readLimits({ status, headers }: Response): ResponseLimits {
  // An instant is compared with the server's own clock, because this one may be wrong.
  const nowMs = dateIn(headers, "date") ?? Date.now()
  let dialect: string | undefined
  let readings: readonly Reading[] = []
  // A cached response says nothing about the present (draft-ietf-httpapi-ratelimit-headers-11, section 4).
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
 * Returns the wait in `retry-after-ms`, which OpenAI and Azure send, or in `Retry-After` (RFC 9110, section 10.2.3);
 * undefined if neither makes sense.
 */
function retryAfterMs(headers: Headers, nowMs: number): number | undefined {
  const ms = numberIn(headers, "retry-after-ms")
  // A proxy may have added a second one.
  const seconds = Math.max(...(headers.get("retry-after") ?? "").split(",").map(numberOf))
  const until = dateIn(headers, "retry-after")
  const asked = [ms, seconds * 1000, (until ?? Number.NaN) - nowMs].find((wait) => !Number.isNaN(wait))
  return asked === undefined ? undefined : Math.min(Math.max(asked, 0), LONGEST_MS)
}

/** Returns the epoch milliseconds of an HTTP date (RFC 9110, section 5.6.7). */
function dateIn(headers: Headers, name: string): number | undefined {
  const text = headers.get(name) ?? ""
  const ms = /^[A-Z][a-z]{2,8},? /.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}
