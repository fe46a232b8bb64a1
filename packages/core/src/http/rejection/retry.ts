/**
 * What a client's program is advised to do, in the member `retry` of a problem body. All durations are whole seconds.
 */
export type RetryAdvice =
  /**
   * The n-th attempt, n from 0, waits min(maxDelaySeconds, initialDelaySeconds * multiplier^n), and up to `jitter` of that
   * more, at random. With an initial delay of 7 in a minute: 7, 14, 28, 56, 60, 60.
   */
  | {
      readonly kind: "exponential-backoff"
      /** The wait before the first attempt: that of Retry-After. None is shorter. */
      readonly initialDelaySeconds: number
      /** By which the wait grows with each attempt: 2. */
      readonly multiplier: number
      /** The longest wait, before jitter: the rule's window. */
      readonly maxDelaySeconds: number
      /** The share of a wait that is added at random, at most: 0.5 is between 1 and 1.5 times. */
      readonly jitter: number
    }
  /** Each attempt waits as long. */
  | {
      readonly kind: "fixed"
      /** The wait before each attempt. */
      readonly afterSeconds: number
    }
  /** Nothing will succeed before an instant. */
  | {
      readonly kind: "at"
      /** The instant, ISO 8601 in UTC, rounded up to a second: "2024-01-02T00:00:00.000Z". */
      readonly at: string
      /** The same from now, for a client whose clock is wrong. */
      readonly afterSeconds: number
    }

/** The JSON text of a {@link RetryAdvice} to wait `seconds`, or `waitMs` exactly, where that is a finite time. */
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
  }
  return undefined
}

/** Whether the advice behind a message names an instant: it may be another one in the next millisecond. */
export function tellsInstant(rejectionMessage: string | undefined): boolean {
  return rejectionMessage === "exhausted-daily-limit"
}

function wholeSecondFrom(epochMs: number): string {
  return new Date(Math.min(Math.ceil(epochMs / 1000) * 1000, MAX_DATE_MS)).toISOString()
}
