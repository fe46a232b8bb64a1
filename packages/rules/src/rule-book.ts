import type {
  InvalidRuleError,
  RuleSourceError,
  RulesEvent,
  RulesStatus,
  StaleEvent,
  Warning,
} from "@sluice/core"
import type { Events } from "@sluice/core/kit"
import type { Edition, LiveRules, ReadyOptions, SignalOption } from "@sluice/core/rules"

/** Events of a rule book, for metrics and logs. A listener that throws does not affect the book. */
export interface RuleBookEvents {
  /** Emitted when the rules of a service have changed. Loading unchanged rules emits no event. */
  rules: [event: RulesEvent]
  /**
   * Emitted when rules could not be read or a version was rejected; the previous version stays in force. Emitted once
   * for each rejected version, and once for an error that recurs. `service` is absent if the rules of all services
   * cannot be read.
   */
  "rule-error": [error: RuleSourceError | InvalidRuleError, service?: string]
  /**
   * Emitted when loading fails and the rules of followed services are older than `staleAfterMs`. Not emitted again
   * until a load has succeeded.
   */
  "rules-stale": [event: StaleEvent]
  /** Emitted for a problem that the app should fix. The logger receives the same warning. */
  warning: [warning: Warning]
}

/** Options of `refresh`. Aborting the signal stops the wait, not the load. */
export interface RefreshOptions extends SignalOption {
  /** The service to load again. Default: all services. */
  readonly service?: string | undefined
}

/**
 * The rules of many services from one source, kept up to date. Any number of limiters can share a book as their
 * `rules`. The code that creates a book must close it.
 */
export interface RuleBook extends Events<RuleBookEvents>, LiveRules {
  /** Name of the book in messages: the name of its source. */
  readonly name: string
  /**
   * Returns the current rules of a service, or undefined if the book has loaded no rules for it. Returns immediately
   * and never waits for a load. An unknown name is loaded in the background, at most once per poll interval. A known
   * name is loaded again after the interval, while its rules stay in force. After a failed load, the next load starts
   * sooner. Safe with untrusted names: the book remembers at most `maxUnknown` of them and runs a limited number of
   * concurrent loads. Names without rules are evicted first.
   */
  rulesOf(service: string): Edition | undefined
  /**
   * Returns the rules of a service as `rulesOf` does, but first waits until an unknown name has been loaded. Also
   * returns undefined if too many unknown names are waiting to be loaded. Rejects with the load error if the rules
   * have never been loaded, with the signal's reason, or with {@link ClosedError}. Keeps the process alive until
   * then.
   */
  find(service: string, options?: SignalOption): Promise<Edition | undefined>
  /** Returns the version, age and problems of the rules of a service. Reads nothing. */
  statusOf(service: string): RulesStatus
  /**
   * Resolves when the rules of every opened service are loaded; with "all", the rules of all services. Rejects with
   * the error of the load under way or, between two loads, of the next load. Rejects with {@link ClosedError} if the
   * book is closed. Keeps the process alive while it waits.
   */
  ready(options?: ReadyOptions): Promise<void>
  /**
   * Loads the rules again, including the rules that `rulesOf` and `find` have loaded. The source must return the
   * currently stored rules (`fresh`). Resolves when the result of a load that began after the call is in force.
   * Rejects with the error of that load. Rejects with {@link ClosedError} if the book is closed. Keeps the process
   * alive until then.
   */
  refresh(options?: RefreshOptions): Promise<void>
  /**
   * Stops loading; the loaded rules stay in force. The source stays open, because the code that created the source must
   * close it.
   */
  close(): void
}
