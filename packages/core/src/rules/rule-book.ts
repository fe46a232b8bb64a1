import type { InvalidRuleError, Problem, RuleSourceError } from "../ground/errors.ts"
import type { Events } from "../ground/events.ts"
import type { Warning } from "../ground/warnings.ts"
import type { ParsedRule } from "./parsing/parsed-rule.ts"

/** The rules of a service as they stand since a load: swapped as a whole, never changed. */
export interface Edition {
  /** Whose rules these are. */
  readonly service: string
  /** In the order written. Empty when the service has none. */
  readonly rules: readonly ParsedRule[]
  /** What is wrong with the rules that were left out. Only a first edition has any. */
  readonly problems: readonly Problem[]
  /** Version of the stored document, where it has one. */
  readonly version?: number
}

/** What a rule book tells of the rules of a service. */
export interface RulesEvent {
  /** Whose rules they are. */
  readonly service: string
  /** "loaded": there were none before. "gone": the source has none any more. */
  readonly change: "loaded" | "changed" | "gone"
  /** Of the rules that are in force now. */
  readonly names: readonly string[]
  /** Version of the stored document, where it has one. */
  readonly version?: number
  /** What is wrong with the rules that were left out. Only a first edition has any. */
  readonly problems: readonly Problem[]
}

/** Whose rules could not be kept up to date. */
export interface StaleEvent {
  /** Absent when it is those of all services. */
  readonly service?: string
  /** Milliseconds since they were known to be those of the source; since the start, where they never were. */
  readonly ageMs: number
}

/** What happened to the rules of a book, for metrics and logs. A listener that throws hurts nobody. */
export interface RuleBookEvents {
  /** The rules of a service are other ones than before. Unchanged ones are not told, however often they are loaded. */
  rules: [event: RulesEvent]
  /**
   * Rules could not be read, or an edition was rejected; the previous edition stays in force. Emitted once for each rejected
   * edition, and once for an error that repeats itself. `service` is absent if the rules of all services cannot be read.
   */
  "rule-error": [error: RuleSourceError | InvalidRuleError, service?: string]
  /**
   * Rules of services that are followed are older than `staleAfterMs`, because loading fails. Once, until a load has
   * succeeded.
   */
  "rules-stale": [event: StaleEvent]
  /** Something that the app should mend: what the logger is told, too. */
  warning: [warning: Warning]
}

/** How far the rules of a service are to be trusted. */
export interface RulesStatus {
  /** Version of the stored document, where it has one. */
  readonly version?: number
  /** When they were last known to be those of the source, in epoch milliseconds; absent before the first load. */
  readonly loadedAtMs?: number
  /** Milliseconds since then; Infinity before the first load. Grows up to the poll interval while all is well. */
  readonly ageMs: number
  /** Whether loading has failed for so long that they are older than `staleAfterMs`. */
  readonly isStale: boolean
  /** True while the source has an edition that was rejected: `error` says why, and the previous edition is in force. */
  readonly isRejected: boolean
  /** What is wrong with the rules that were left out of the edition in force. Only a first edition has any. */
  readonly problems: readonly Problem[]
  /** Why what is in the source now is not what is in force; absent while it is. */
  readonly error?: RuleSourceError | InvalidRuleError
}

/** Until when a call is waited for. */
export interface SignalOption {
  /** Ends the waiting: the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

/** Until when, and through what, to wait for rules. */
export interface ReadyOptions extends SignalOption {
  /** Whether to go on waiting when a load fails, until one succeeds or the signal is aborted: default false. */
  readonly retry?: boolean | undefined
}

/** What to load again. The signal ends the waiting, not the load. */
export interface RefreshOptions extends SignalOption {
  /** Only the rules of this service: default all. */
  readonly service?: string | undefined
}

/**
 * The rules of many services from one source, held ready and kept up to date. It may be given to any number of
 * limiters, as their `rules`; who made it closes it.
 */
export interface RuleBook extends Events<RuleBookEvents> {
  /** What messages call it: the name of its source. */
  readonly name: string
  /**
   * The rules of a service now; undefined when it has none, as far as is known. Reads nothing by itself and answers at
   * once: a name that is not known is asked for in the background, at most once in a poll interval. So is one that was
   * asked for earlier, while its rules stay in force; after a failed load sooner, as any other. Names may come from
   * strangers: the book remembers `maxUnknown` of them, those that have rules before all others, and reads no more than
   * some at a time.
   */
  rulesOf(service: string): Edition | undefined
  /**
   * The same for who would rather wait until a name has been asked for. Undefined too when there are too many such
   * names to ask for this one now. Rejects with why the rules cannot be loaded, as long as they never were, with the
   * signal's reason, or with {@link ClosedError}. Holds the process until then.
   */
  find(service: string, options?: SignalOption): Promise<Edition | undefined>
  /** Version, age and problems of the rules of a service. Reads nothing. */
  statusOf(service: string): RulesStatus
  /**
   * Resolves when the rules of every service that was opened are loaded, with "all" those of all. Rejects with the error
   * of the load under way or, between two, of the next one; with {@link ClosedError} when the book is closed. Holds the process
   * until then.
   */
  ready(options?: ReadyOptions): Promise<void>
  /**
   * Resolves when what a load has read that began after the call is in force, also of the names that were found by
   * `rulesOf` and `find`; rejects with that load's error, with {@link ClosedError} when the book is closed. The source is told
   * that what is stored now is wanted (`fresh`). Holds the process until then.
   */
  refresh(options?: RefreshOptions): Promise<void>
  /** Stops loading; the rules that it has stay in force. The source stays open: who made it closes it. */
  close(): void
}
