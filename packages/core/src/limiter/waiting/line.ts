import type { Decision } from "../../decision/decision.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"
import type { Attempt } from "./attempt.ts"
import type { Heap } from "./heap.ts"
import type { WaitOptions } from "./wait-options.ts"

/** The turn of a delayed request: it was granted units of a line's counter, and goes on later. */
export interface Turn {
  readonly ticket: Ticket
  readonly line: Line
  /**
   * The pending refunds of requests that have left and had earlier turns. The refunds are made when this request
   * leaves, too.
   */
  readonly refunds: (() => void)[]
}

/** The requests that wait for units of one counter, in order of arrival. */
export interface Line {
  /** The name of its counter. */
  readonly name: string
  /** The waiting requests, by arrival. */
  readonly waiting: Heap<Ticket>
  /** The waiting requests that have a deadline, by deadline. */
  readonly impatient: Heap<Ticket>
  /** The turns of delayed requests, earliest turn first. */
  readonly turns: Turn[]
  /** Pending refunds of requests that left before their turn, if no request has a later turn. */
  readonly refunds: (() => void)[]
  /** Number of requests that are asking the store for units of this counter. */
  asking: number
  /** Resolves when the last request that asked has been concluded. */
  lastAsked?: Promise<void>
  /** The time until which the counter has nothing for the first in line; undefined if unknown. */
  untilMs?: number | undefined
  /**
   * The number that the next attempt had when a request was last refused. Attempts with a smaller number were made
   * before that.
   */
  refusedAt: number
  /**
   * The number of the next attempt when units of the counter last came back. The results of earlier attempts may be
   * stale.
   */
  returnedAt: number
  /** When the timer fires, and a function that stops it. */
  timer?: { readonly atMs: number; stop(): void } | undefined
  /** How many requests that had to wait may ask at the same time. Until one of them is refused, all of them may. */
  width: number
  /** A lower bound: no waiting request has a smaller `maxWaiting`. */
  fewest: number
  /**
   * Whether requests have come from other lines. For some of them it is not known whether too many wait ahead of them.
   */
  hasUncounted: boolean
}

/** The end of a request's wait. */
export type WaitOutcome = { readonly decision: Decision } | { readonly error: unknown }

/** A request in the waiting room. */
export interface Ticket {
  ruleChecks: readonly RuleCheck[]
  /** The rule checks that it waits for. */
  awaited: readonly RuleCheck[]
  readonly options: WaitOptions
  /** The end of its wait, by the limiter's clock. */
  readonly deadlineMs: number
  /** The order in which requests arrive. */
  readonly number: number
  /**
   * - waiting: stands in one line
   * - asking: asks the store
   * - delayed: was granted, and waits for its turn
   * - leaving: out of line, while its last result is pending
   * - done: answered, or gone
   */
  state: "waiting" | "asking" | "delayed" | "leaving" | "done"
  /** While it waits: the rule check whose counter it waits for, and the line of that counter. */
  ruleCheck?: RuleCheck | undefined
  line?: Line | undefined
  /** The line in which it was the first, and was refused. */
  sleptIn?: Line | undefined
  /** Its grant, until it goes on. */
  granted?: Decision | undefined
  /** Its turns while it is delayed: one for each of its counters. */
  turns: readonly Turn[]
  /** While it is delayed: the end of the delay. */
  untilMs: number
  /** Whether rules have changed while it is being decided. If it then has to wait, the new rules apply. */
  isOutdated: boolean
  /** Its latest attempt; undefined if it has not asked under its current rules. */
  attempt?: Attempt | undefined
  /** Whether it has stood in a line or asked the store before. */
  isKnown: boolean
  /** Whether `onWait` has been called. */
  isAnnounced: boolean
  /** Called when it has been answered or has gone. */
  readonly atEnd: (() => void)[]
  outcome?: WaitOutcome | undefined
  /** Passes the outcome to the caller, which waits for a promise. */
  reply?: (outcome: WaitOutcome) => void
}
