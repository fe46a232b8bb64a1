/**
 * Machine-readable advice to a client, in the member `retry` of a problem body. All durations are whole seconds.
 */
export type RetryAdvice =
  /**
   * Attempt n, counted from 0, waits min(maxDelaySeconds, initialDelaySeconds * multiplier^n), plus a random share of
   * up to `jitter`. For example, an initial delay of 7 with a window of a minute results in 7, 14, 28, 56, 60, 60.
   */
  | {
      readonly kind: "exponential-backoff"
      /** The wait before the first attempt, equal to Retry-After. No later wait is shorter. */
      readonly initialDelaySeconds: number
      /** The factor by which the wait grows with each attempt: 2. */
      readonly multiplier: number
      /** The longest wait before jitter: the rule's window. This wait is never shorter than `initialDelaySeconds`. */
      readonly maxDelaySeconds: number
      /** The largest share of a wait that is added at random. With 0.5, the wait is 1 to 1.5 times as long. */
      readonly jitter: number
    }
  /** The same wait before every attempt. */
  | {
      readonly kind: "fixed"
      /** The wait before each attempt. */
      readonly afterSeconds: number
    }
  /** An instant before which no attempt succeeds. */
  | {
      readonly kind: "at"
      /** The instant, ISO 8601 in UTC, rounded up to a second: "2024-01-02T00:00:00.000Z". */
      readonly at: string
      /** The seconds until that instant, for a client whose clock is wrong. */
      readonly afterSeconds: number
    }

/**
 * A function that returns the JSON text of a {@link RetryAdvice} to wait `seconds`, which is `waitMs` rounded
 * up. `waitMs` must be finite.
 */
export type RetryWriter = (seconds: number, waitMs: number, nowMs: () => number) => string

/** The last instant that a Date can represent (ECMA-262, section 21.4.1.1). Some windows end later. */
const MAX_DATE_MS = 8.64e15

/**
 * Returns the writer of the machine-readable advice behind a rule's rejection message; undefined for a message that
 * is written for people.
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
  }
  return undefined
}

/** Whether the advice behind a message contains an instant, which may change within a millisecond. */
export function tellsInstant(rejectionMessage: string | undefined): boolean {
  return rejectionMessage === "exhausted-daily-limit"
}

function wholeSecondFrom(epochMs: number): string {
  return new Date(Math.min(Math.ceil(epochMs / 1000) * 1000, MAX_DATE_MS)).toISOString()
}
