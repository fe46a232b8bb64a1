import type { Problem } from "../ground/errors.ts"
import type { StorableRule } from "./rule.ts"

/** The rules of one service as a source has them now. */
export interface LoadedRules {
  /** The valid rules, in the order written. Empty if the source knows no rules for the service. */
  readonly rules: readonly StorableRule[]
  /** What is wrong with the others. The rule book decides what applies then. */
  readonly problems: readonly Problem[]
  /** Version of the stored document, where it has one. */
  readonly version?: number
  /** Where the source can tell cheaply: the same text as long as what is stored for the service is the same. */
  readonly stamp?: string
}

/** What is stored for one service among many, not yet parsed: parsing thousands in one go would hold up requests. */
export interface FoundRules {
  /** Whose rules these are. */
  readonly service: string
  /** The same text as long as what is stored for the service is the same: then it need not be read again. */
  readonly stamp: string
  /**
   * Parses it. Neither throws nor rejects: what is wrong is a problem. A source whose documents may have hundreds of rules
   * returns a promise and parses them in slices, such as with `readRuleDocumentInSlices`.
   */
  read(): LoadedRules | Promise<LoadedRules>
}

/** What a synchronous load has read. */
export interface LoadedNow extends LoadedRules {
  /** What else is wrong in the same place, such as invalid rules of other services, to be logged. Default: nothing. */
  readonly otherProblems?: readonly Problem[]
}

/** How to load. */
export interface LoadOptions {
  /** Ends the load: it rejects with the signal's reason. */
  readonly signal?: AbortSignal
  /**
   * What was written before the call must be seen: a source that may answer with something older must not. The rule
   * book asks for it where somebody has called `refresh`; polls do without.
   */
  readonly fresh?: boolean
}

/**
 * Where rules are. `load` and `loadAll` reject with {@link RuleSourceError} if the rules cannot be read at all. A rule that is
 * invalid is not an error of the source but a problem beside the valid rules. In both cases the rule book keeps the edition
 * that is in force.
 */
export interface RuleSource {
  /** What messages call it: `rules file "/etc/sluice/rules.yaml"`. */
  readonly name?: string
  /** The rules of one service; none where the source does not know it. */
  load(service: string, options?: LoadOptions): Promise<LoadedRules>
  /**
   * Returns the rules of one service synchronously. The rule book calls it when a limiter of the service is created, and
   * creating the limiter fails with what this throws or has in `problems`. A source without it is a network source: its
   * limiters must say what applies until the first load has succeeded.
   * @throws {@link RuleSourceError} if the rules cannot be read.
   */
  loadSync?(service: string): LoadedNow
  /** The rules of every service, a page at a time. Absent where a source cannot list them. */
  loadAll?(options?: LoadOptions): AsyncIterable<readonly FoundRules[]>
  /** How often the rules should be loaded again, in milliseconds; absent where `watch` tells of every change. */
  readonly pollMs?: number
  /** Calls `changed` when `load` may answer differently; yields the function that stops it. */
  watch?(changed: () => void): () => void
  /** Frees what the source itself opened. */
  close?(): void | Promise<void>
}
