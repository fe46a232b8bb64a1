import type { Problem } from "@sluice/core"
import type { ServiceMetadata, StorableRule } from "@sluice/core/rules"

/** The rules of one service, as its source currently stores them. */
export interface LoadedRules {
  /** The valid rules, in the order written. Empty if the source has no rules for the service. */
  readonly rules: readonly StorableRule[]
  /** Problems of the invalid rules. If there are any, the rule book decides which rules apply. */
  readonly problems: readonly Problem[]
  /** Version of the stored document; absent if the document has no version. */
  readonly version?: number
  /** The owner and contact of the service. Default: not known. */
  readonly metadata?: ServiceMetadata
  /**
   * A string that stays the same while the stored rules of the service stay the same. Set the stamp if it is cheap to
   * compute.
   */
  readonly stamp?: string
}

/**
 * The stored rules of one service among many, not yet parsed. Parsing the rules of thousands of services in one go
 * would block requests.
 */
export interface FoundRules {
  /** The service that the rules belong to. */
  readonly service: string
  /**
   * A string that stays the same while the stored rules of the service stay the same. Unchanged rules are not read
   * again.
   */
  readonly stamp: string
  /**
   * Parses the rules. Reads the rules. Neither throws nor rejects, because every error is returned as a problem. If
   * documents may have hundreds of rules, the source should return a promise and parse in slices (see
   * `readRuleDocumentInSlices`).
   */
  read(): LoadedRules | Promise<LoadedRules>
}

/** The result of a synchronous load. */
export interface LoadedNow extends LoadedRules {
  /** Problems to log that do not concern the service, such as invalid rules of other services. Default: none. */
  readonly otherProblems?: readonly Problem[]
}

/** How to load. */
export interface LoadOptions {
  /** Aborts the load, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal
  /**
   * True if the load must return everything that was written before the call, so the source must not return an older
   * state. The rule book requests a fresh load for a call of `refresh`, but not for polls.
   */
  readonly fresh?: boolean
}

/**
 * Where a rule book loads rules from. `load` and `loadAll` reject with {@link RuleSourceError} if the rules cannot be
 * read at all. An invalid rule is not an error of the source. It is a problem, which the source returns together with
 * the valid rules. In both cases the rule book keeps the version that is in force.
 */
export interface RuleSource {
  /** Name of the source in messages: `rules file "/etc/sluice/rules.yaml"`. */
  readonly name?: string
  /** Returns the rules of one service; no rules if the source has none for the service. */
  load(service: string, options?: LoadOptions): Promise<LoadedRules>
  /**
   * Returns the rules of one service synchronously. The rule book calls `loadSync` when a limiter of the service is
   * created. Creating the limiter fails if `loadSync` throws or returns problems. A source without `loadSync` is a
   * network source. Its limiters must define what applies until the first load has succeeded.
   * @throws {@link RuleSourceError} if the rules cannot be read.
   */
  loadSync?(service: string): LoadedNow
  /** Returns the rules of every service in pages. Absent if the source cannot list its services. */
  loadAll?(options?: LoadOptions): AsyncIterable<readonly FoundRules[]>
  /** Poll interval in milliseconds. Absent if `watch` reports every change. */
  readonly pollMs?: number
  /** Calls `changed` when `load` may return other rules. Returns a function that stops watching. */
  watch?(changed: () => void): () => void
  /** Frees the resources that the source itself has opened. */
  close?(): void | Promise<void>
}
