import type { Problem } from "../errors.ts"
import type { StorableRule } from "./rule.ts"

/** The rules of one service as a source has them now. */
export interface LoadedRules {
  /** The good ones, in the order written. Empty when the source knows no rules for the service. */
  readonly rules: readonly StorableRule[]
  /** The ones set aside: the good rules load without them. */
  readonly problems: readonly Problem[]
  /** Version of the stored document, where it has one. */
  readonly version?: number
  /** Where the source can tell cheaply: the same text as long as what is stored for the service is the same. */
  readonly stamp?: string
}

/** What is stored for one service among many, not yet parsed: the parsing of thousands must not happen at a stretch. */
export interface FoundRules {
  /** Whose rules these are. */
  readonly service: string
  /** The same text as long as what is stored for the service is the same: then it need not be read again. */
  readonly stamp: string
  /** Parses it. Does not throw: what is wrong is a problem. */
  read(): LoadedRules
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
 * Where rules are. `load` and `loadAll` reject with {@link RuleSourceError} when the rules cannot be read at all: the rule book
 * then keeps the last good ones. A rule that is wrong is not an error of the source but a problem beside the good ones.
 */
export interface RuleSource {
  /** What messages call it: `rules file "/etc/sluice/rules.yaml"`. */
  readonly name?: string
  /** The rules of one service; none where the source does not know it. */
  load(service: string, options?: LoadOptions): Promise<LoadedRules>
  /** The rules of every service, a page at a time. Absent where a source cannot list them. */
  loadAll?(options?: LoadOptions): AsyncIterable<readonly FoundRules[]>
  /** How often the rules should be loaded again, in milliseconds; absent where `watch` tells of every change. */
  readonly pollMs?: number
  /** Calls `changed` when `load` may answer differently; yields the function that stops it. */
  watch?(changed: () => void): () => void
  /** Frees what the source itself opened. */
  close?(): void | Promise<void>
}
