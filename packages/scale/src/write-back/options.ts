import type { Clock, Store } from "@sluice/core"
import { type OptionCheck, problemAt, requireOptions, steadyClock, wholeNumber } from "@sluice/core/kit"
import { COMMON_CHECKS, type Parsed, sharedStore, timeMs } from "../in-front/options.ts"

/** The options of a write-back store. All options have defaults. */
export interface WriteBackStoreOptions {
  /**
   * Milliseconds from a request until its units are charged to the shared store, with a tolerance of a tenth. A whole
   * number, at least 1. Default: 100.
   */
  readonly settleMs?: number | undefined
  /**
   * Number of processes that count in the shared store. Until the next settlement, each process then uses only its
   * share of the remaining units. Default: each process uses all units that remained at its latest settlement.
   */
  readonly instances?: number | undefined
  /**
   * Maximum number of counters in this process. Each counter takes about 500 to 900 bytes. While the shared store
   * does not respond, up to the same number of evicted counters (but at least 1,024) wait to be charged. Default:
   * 1,000,000.
   */
  readonly maxKeys?: number | undefined
  /** Selects the rules that are written back, by name. Default: all rules. */
  readonly rules?: ((name: string) => boolean) | undefined
  /**
   * A monotonic clock of this process, in milliseconds. Default: a clock that is not affected by changes of the system
   * time.
   */
  readonly clock?: Clock | undefined
}

/** The options with their defaults. */
export type ParsedWriteBackOptions = Parsed<WriteBackStoreOptions>

const CHECKS: Readonly<Record<string, OptionCheck>> = {
  settleMs: timeMs,
  instances: wholeNumber("number of instances", "processes"),
  maxKeys: wholeNumber("number of counters", "counters"),
  ...COMMON_CHECKS,
}

const checkStore = sharedStore("writeBackStore(redisStore({ client }))", problemOfWriteBack)

/**
 * Returns the options of a write-back store with their defaults.
 * @throws {@link InvalidOptionError} with all options that are invalid or misspelled, or if the store is not suitable
 */
export function parseOptions(store: Store, options: WriteBackStoreOptions): ParsedWriteBackOptions {
  requireOptions("writeBackStore", options, CHECKS, problemAt("store", store, checkStore))
  const { settleMs = 100, instances = 1, maxKeys = 1_000_000, rules = () => true } = options
  return { settleMs, instances, maxKeys, rules, clock: options.clock ?? steadyClock }
}

function problemOfWriteBack(store: Store): ReturnType<OptionCheck> {
  if (store.status?.writeBack === undefined) return undefined
  return { message: "is written back already", accepted: "the shared store; remove one writeBackStore()" }
}
