import type { Decision } from "../../decision/decision.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"
import type { Attempt } from "./attempt.ts"
import type { Heap } from "./heap.ts"
import type { WaitOptions } from "./wait-options.ts"

/** The turn of a delayed request, which was granted units of a line's counter and proceeds later. */
export interface Turn {
  readonly ticket: Ticket
  readonly line: Line
  /**
   * The pending refunds of requests that had earlier turns and have left. The refunds are made when this request
   * leaves as well.
   */
  readonly refunds: (() => void)[]
}

/** The requests that wait for units of one counter, in the order in which they are served. */
export interface Line {
  /** The name of the line's counter. */
  readonly name: string
  /** The waiting requests, by priority and arrival. */
  readonly waiting: Heap<Ticket>
  /** The waiting requests that have a deadline, by deadline. */
  readonly impatient: Heap<Ticket>
  /** The turns of delayed requests, earliest turn first. */
  readonly turns: Turn[]
  /** Pending refunds of requests that left before their turn, if no request has a later turn. */
  readonly refunds: (() => void)[]
  /** Number of requests whose store call for units of this counter is pending. */
  asking: number
  /** A promise that resolves when the latest of these calls has been processed. */
  lastAsked?: Promise<void>
  /** The time until which the first request in line does not call the store; undefined if it may call now. */
  untilMs?: number | undefined
  /**
   * Whether the counter may have units before `untilMs`, because permits may be released at any time. Otherwise no
   * request in line can be admitted before `untilMs`. Absent until the line sleeps.
   */
  mayEndSooner?: boolean
  /**
   * The number of the next attempt at the time of the latest refusal. Attempts with a smaller number began before
   * this refusal.
   */
  refusedAt: number
  /**
   * The number of the next attempt at the time when units of the counter last became available. The results of
   * earlier attempts may be stale.
   */
  returnedAt: number
  /** The running timer: the time at which it fires, and a function that stops it. */
  timer?: { readonly atMs: number; stop(): void } | undefined
  /**
   * Maximum number of concurrent store calls by requests that had to wait. Unlimited until one of these requests is
   * refused.
   */
  width: number
  /** A lower bound of `maxWaiting`: no waiting request has a smaller value. */
  fewest: number
  /**
   * Whether requests have moved here from other lines. The number of requests ahead of such a request has not been
   * checked yet.
   */
  hasUncounted: boolean
}

/** The result of a request's wait. */
export type WaitOutcome = { readonly decision: Decision } | { readonly error: unknown }

/** A request in the waiting room. */
export interface Ticket {
  ruleChecks: readonly RuleCheck[]
  /** The rule checks that the request waits for. */
  awaited: readonly RuleCheck[]
  readonly options: WaitOptions
  /** The latest time at which the wait ends, by the limiter's clock. */
  readonly deadlineMs: number
  /**
   * The position of the request in the order of service: by priority, and by arrival within a priority. Every
   * comparison of two requests uses this number.
   */
  readonly number: number
  /**
   * - waiting: is in one line
   * - asking: has called the store
   * - delayed: was granted its units, and waits for its turn
   * - leaving: has left its line, while its last store call is pending
   * - done: was decided, or has given up
   */
  state: "waiting" | "asking" | "delayed" | "leaving" | "done"
  /**
   * The rule check for whose counter the request waits. `line` is the line of this counter. Both are undefined while
   * the request does not wait.
   */
  ruleCheck?: RuleCheck | undefined
  line?: Line | undefined
  /** The line in which the request was refused when it was the first. */
  sleptIn?: Line | undefined
  /** The admission of the request, until the request proceeds. */
  granted?: Decision | undefined
  /** The turns of a delayed request, one for each of its counters; otherwise empty. */
  turns: readonly Turn[]
  /** The time at which the delay of a delayed request ends. */
  untilMs: number
  /**
   * Whether rules have changed while the request is being decided. If the request then has to wait, the new rules
   * apply.
   */
  isOutdated: boolean
  /** The latest attempt; undefined if the store has not been called under the request's current rules. */
  attempt?: Attempt | undefined
  /** Whether the request has been in a line or has called the store before. */
  isKnown: boolean
  /** Whether `onWait` has been called. */
  isAnnounced: boolean
  /** Callbacks for the end of the wait. */
  readonly atEnd: (() => void)[]
  outcome?: WaitOutcome | undefined
  /** Settles the promise of the caller with the outcome. */
  reply?: (outcome: WaitOutcome) => void
}
