import type { Clock } from "../ground/clock.ts"
import type { InvalidRuleError, Problem, RuleSourceError } from "../ground/errors.ts"
import type { MaybePromise } from "../ground/maybe-promise.ts"
import type { SignalOption } from "../ground/signal.ts"
import type { Logger, Warner, Warning } from "../ground/warnings.ts"
import type { ParsedRule } from "./rule.ts"
import type { ServiceMetadata } from "./service-metadata.ts"

/** One version of a service's rules, as a load has read them. A version is replaced as a whole and never changed. */
export interface Edition {
  /** The service that the rules belong to. */
  readonly service: string
  /** The rules in the order written; empty for a service without rules. */
  readonly rules: readonly ParsedRule[]
  /** Problems of the rules that were left out. Only the first loaded version can have such problems. */
  readonly problems: readonly Problem[]
  /** Version of the stored document, if it has one. */
  readonly version?: number
  /** The owner and contact of the service. Absent if the service's document has no `metadata`. */
  readonly metadata?: ServiceMetadata
}

/** A change in the rules of a service. */
export interface RulesEvent {
  /** The service that the rules belong to. */
  readonly service: string
  /** "loaded" means that there were no rules before, and "gone" that the source no longer contains rules. */
  readonly change: "loaded" | "changed" | "gone"
  /** Names of the rules that are in force now. */
  readonly names: readonly string[]
  /** Version of the stored document, if it has one. */
  readonly version?: number
  /** Problems of the rules that were left out. Only the first loaded version can have such problems. */
  readonly problems: readonly Problem[]
}

/** The service whose rules could not be kept up to date, and their age. */
export interface StaleEvent {
  /** The service that the rules belong to. Absent if the rules of all services are stale. */
  readonly service?: string
  /**
   * Milliseconds since the rules were last known to match the source. If they have never matched it, milliseconds
   * since the start.
   */
  readonly ageMs: number
}

/** The age and validity of the rules of a service. */
export interface RulesStatus {
  /** Version of the stored document, if it has one. */
  readonly version?: number
  /** The latest time at which the rules matched the source, in epoch milliseconds. Absent before the first load. */
  readonly loadedAtMs?: number
  /**
   * Milliseconds since `loadedAtMs`; Infinity before the first load. The age normally grows up to the poll interval.
   */
  readonly ageMs: number
  /** True if loading fails repeatedly and the rules are older than `staleAfterMs`. */
  readonly isStale: boolean
  /**
   * True while the source contains a version that was rejected. `error` is the reason, and the previous version stays
   * in force.
   */
  readonly isRejected: boolean
  /**
   * Problems of the rules that were left out of the version in force. Only the first loaded version can have such
   * problems.
   */
  readonly problems: readonly Problem[]
  /**
   * The reason why the rules in force differ from the rules in the source. Absent if they are the same.
   */
  readonly error?: RuleSourceError | InvalidRuleError
}

/** The options of a wait for rules. */
export interface ReadyOptions extends SignalOption {
  /** True to continue waiting after a failed load, until a load succeeds or the signal aborts. Default: false. */
  readonly retry?: boolean | undefined
}

/** The decision on every request before any rules are loaded: "allow" admits it, and "deny" refuses it with 503. */
export type OnRulesMissing = "allow" | "deny"

/** The behavior until the first load of a network source has succeeded. */
export interface UntilLoaded {
  /** The rules that apply until the first load; none by default. */
  readonly defaultRules: readonly ParsedRule[]
  /** Whether requests are admitted if there are no default rules. */
  readonly onRulesMissing: OnRulesMissing
}

/** The events of the rules that a reader has opened. */
export interface ReaderEvents {
  /** Changed rules have come into force in the reader. */
  rules: [event: RulesEvent]
  /** Rules could not be read, or a version of them was rejected; the previous version stays in force. */
  "rule-error": [error: RuleSourceError | InvalidRuleError]
  /** Loading has failed for a long time, so the rules may be out of date. */
  "rules-stale": [event: StaleEvent]
  /** A problem that the app should fix. */
  warning: [warning: Warning]
}

/** Receives the events of a reader. */
export interface ReaderListener {
  /** Emits an event to the listeners of the reader. Never throws and never rejects. */
  emit<Name extends keyof ReaderEvents>(name: Name, ...args: ReaderEvents[Name]): void
}

/** A limiter that has opened the rules of its service. */
export interface RulesReader {
  /** The clock of the limiter, for intervals and ages. */
  readonly clock: Clock
  /** The logger of the limiter. */
  readonly logger: Logger | undefined
  /** Logs that a version cannot come into force. */
  readonly warner: Warner
  /** The behavior until the first version is in force. Used only in messages. */
  readonly untilLoaded: UntilLoaded
  /** Receives the events. */
  readonly events: ReaderListener
  /**
   * Compiles a version of the rules. Returns the function that brings the whole version into force, or a promise of
   * this function if the version is compiled in slices. Throws {@link InvalidRuleError} if the rules are valid but
   * cannot be used now. The reader calls `again` when the rules may have become usable.
   */
  prepare(edition: Edition, again: () => void): MaybePromise<() => void>
}

/** The rules of one service, opened for one reader. */
export interface OpenedRules {
  /** Age and validity of the rules. Reading the status loads nothing. */
  readonly status: RulesStatus
  /** Resolves when a version is in force. Rejects with the error of the current load, or with the signal's reason. */
  ready(options: ReadyOptions): Promise<void>
  /**
   * Loads the rules again. Resolves when the result of a load that began after the call is in force. Rejects with the
   * error of that load, or with the signal's reason.
   */
  refresh(options: SignalOption): Promise<void>
  /** Stops loading rules. Pending calls reject with the reason, and the rules in force stay in force. */
  close(reason: Error): void
}

/**
 * Rules that may change while limiters use them. Rule books and the sources of `@sluice/rules` and `@sluice/dynamodb`
 * are live rules. For a `RuleSource` of your own, pass `liveRules(source)` of `@sluice/rules`.
 */
export interface LiveRules {
  /** The name of the rules in messages. */
  readonly name?: string
  /** The version of `@sluice/core` that has parsed the rules. Limiters of another version refuse them. */
  readonly coreVersion: string
  /**
   * True if `open` reads the rules before it returns, and throws if it cannot. A limiter then needs no default rules.
   */
  readonly readsSynchronously: boolean
  /** The behavior of limiters until the first load. The options of a limiter override it. */
  readonly untilLoaded?: UntilLoaded | undefined
  /**
   * Opens the rules of a service for a reader. Only limiters call this method. If a version has already been loaded,
   * `prepare` is called before this method returns.
   * @throws {@link ClosedError} if the rules are closed.
   * @throws {@link RuleSourceError} or {@link InvalidRuleError} with the problems of rules that are read synchronously.
   */
  open(service: string, reader: RulesReader): OpenedRules
}
