/**
 * What a client's program is advised to do, in the member `retry` of a problem body. All durations are whole seconds.
 *
 * - `exponential-backoff`: the n-th attempt, n from 0, waits min(maxDelaySeconds, initialDelaySeconds * multiplier^n),
 *   and up to `jitter` of that more, at random: 0.5 is between 1 and 1.5 times. It is never less than Retry-After, and
 *   the longest delay is the rule's window. With an initial delay of 7 in a minute: 7, 14, 28, 56, 60, 60.
 * - `fixed`: wait `afterSeconds` before each attempt.
 * - `at`: nothing will succeed before the instant `at`, ISO 8601 in UTC, rounded up to a second; `afterSeconds` says the
 *   same for a client whose clock is wrong.
 */
export type RetryAdvice =
  | {
      readonly kind: "exponential-backoff"
      readonly initialDelaySeconds: number
      readonly multiplier: number
      readonly maxDelaySeconds: number
      readonly jitter: number
    }
  | { readonly kind: "fixed"; readonly afterSeconds: number }
  | { readonly kind: "at"; readonly at: string; readonly afterSeconds: number }

/** The JSON text of a `RetryAdvice` to wait `seconds`, or `waitMs` exactly, where that is a finite time. */
export type RetryWriter = (seconds: number, waitMs: number, nowMs: () => number) => string

/** The last instant that a Date can hold (ECMA-262, section 21.4.1.1): some windows reach beyond it. */
const MAX_DATE_MS = 8.64e15

/**
 * The writer of the machine-readable advice behind a rule's rejection message; undefined for a message that is a text
 * for people.
 */
export function retryWriter(rejectionMessage: string, windowS: number): RetryWriter | undefined {
  switch (rejectionMessage) {
    case "retry-with-exponential-backoff":
      return (seconds) =>
        `{"kind":"exponential-backoff","initialDelaySeconds":${seconds},"multiplier":2,` +
        `"maxDelaySeconds":${Math.max(seconds, windowS)},"jitter":0.5}`
    case "retry-with-fixed-time":
      return (seconds) => `{"kind":"fixed","afterSeconds":${seconds}}`
    case "exhausted-daily-limit":
      return (seconds, waitMs, nowMs) =>
        `{"kind":"at","at":"${wholeSecondFrom(nowMs() + waitMs)}","afterSeconds":${seconds}}`
    default:
      return undefined
  }
}

function wholeSecondFrom(epochMs: number): string {
  return new Date(Math.min(Math.ceil(epochMs / 1000) * 1000, MAX_DATE_MS)).toISOString()
}
