import type { Clock, Store } from "@sluice/core"
import { type OptionCheck, problemAt, requireOptions, steadyClock, wholeNumber } from "@sluice/core/kit"
import { COMMON_CHECKS, type Parsed, sharedStore, timeMs } from "../in-front/options.ts"

/** The options of a leased store. All options have defaults. */
export interface LeasedStoreOptions {
  /**
   * Milliseconds for which booked units are held without being used: a whole number, at least 1. Default: 1,000.
   * Units are never held for more than a twentieth of the rule's window.
   */
  readonly leaseMs?: number | undefined
  /** The smallest limit that is leased, in units: a whole number, at least 1. Default: 1,000. */
  readonly leastLimit?: number | undefined
  /** Selects the rules that are leased, by name. Default: all rules. */
  readonly rules?: ((name: string) => boolean) | undefined
  /**
   * A monotonic clock of this process, in milliseconds. Default: a clock that is not affected by changes of the system
   * time.
   */
  readonly clock?: Clock | undefined
}

/** The options with their defaults. */
export interface ParsedLeasedOptions extends Parsed<LeasedStoreOptions> {
  /** Returns the wall-clock time, which advances while the machine is suspended. Absent if a clock was given. */
  readonly wallMs?: () => number
}

const CHECKS: Readonly<Record<string, OptionCheck>> = {
  leaseMs: timeMs,
  leastLimit: wholeNumber("limit", "units"),
  ...COMMON_CHECKS,
}

const checkStore = sharedStore("leasedStore(redisStore({ client }))", problemOfWrapper)

/**
 * Returns the options of a leased store with their defaults.
 * @throws {@link InvalidOptionError} with all options that are invalid or misspelled, or if the store cannot be leased
 */
export function parseOptions(store: Store, options: LeasedStoreOptions): ParsedLeasedOptions {
  requireOptions("leasedStore", options, CHECKS, problemAt("store", store, checkStore))
  const { leaseMs = 1_000, leastLimit = 1_000, rules = () => true, clock: given } = options
  const parsed = { leaseMs, leastLimit, rules, clock: given ?? steadyClock }
  return given === undefined ? { ...parsed, wallMs: () => Date.now() } : parsed
}

function problemOfWrapper(store: Store): ReturnType<OptionCheck> {
  if (store.status?.writeBack !== undefined) {
    const accepted = "the shared store; put writeBackStore() in front of leasedStore()"
    return { message: "is written back", accepted }
  }
  if (store.status?.leases === undefined) return undefined
  return { message: "is leased already", accepted: "the store without leases; remove one leasedStore()" }
}
