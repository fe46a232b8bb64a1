/** The algorithms that count. Each has its worst case on the page docs/reference/algorithms.md. */
export type AlgorithmName = "sliding-window" | "fixed-window"

/** Where a fixed window starts: at multiples of its length since the epoch, or at the first request. */
export type Alignment = "epoch" | "first-hit"

/**
 * What is decided when the shared store is gone: by a limiter in this process alone, admitted uncounted, or refused.
 */
export type OnStoreFailure = "local" | "allow" | "deny"

/**
 * A rule compiled to what a store needs: how many units, in which window, counted how.
 *
 * `counter` identifies the counter beside the partition. It is a short fingerprint of service, rule name, field,
 * algorithm, window and alignment, and not of the limit, so a changed limit keeps its counts.
 */
export interface Policy {
  readonly name: string
  readonly counter: string
  readonly algorithm: AlgorithmName
  /** Quota units per window: an integer, 0 and up (0 only from a limit function). */
  readonly limit: number
  /** Length of the window in whole milliseconds, at least 1. */
  readonly windowMs: number
  /** Only for `fixed-window`. */
  readonly align: Alignment
}
