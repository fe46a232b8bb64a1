import { type Clock, steadyClock } from "../../ground/clock.ts"
import { InvalidOptionError, type Problem } from "../../ground/errors.ts"
import { show, suggestion } from "../../ground/show.ts"
import { LONGEST_TIMER_MS } from "../../ground/time.ts"
import type { Store } from "../store.ts"

/** The options of a leased store. All of them have defaults. */
export interface LeasedStoreOptions {
  /**
   * Milliseconds for which booked units are held without being used: a whole number, at least 1. Default: 1,000. Never
   * more than a twentieth of the rule's window.
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
export interface ParsedLeasedOptions {
  readonly leaseMs: number
  readonly leastLimit: number
  readonly rules: (name: string) => boolean
  readonly clock: Clock
  /** Returns the wall-clock time, which goes on while the machine is suspended. Absent with a given clock. */
  readonly wallMs?: () => number
}

const NAMES = ["leaseMs", "leastLimit", "rules", "clock"]

/**
 * Returns the options of a leased store with their defaults.
 * @throws {@link InvalidOptionError} with all options that are invalid or misspelled, or if the store cannot be leased
 */
export function parseOptions(store: Store, options: LeasedStoreOptions): ParsedLeasedOptions {
  const problems = [...problemsOfStore(store), ...problemsOf(options)]
  if (problems.length > 0) throw new InvalidOptionError(problems)
  const { leaseMs = 1_000, leastLimit = 1_000, rules = () => true, clock } = options
  const parsed = { leaseMs, leastLimit, rules, clock: clock ?? steadyClock }
  return clock === undefined ? { ...parsed, wallMs: () => Date.now() } : parsed
}

function problemsOfStore(store: Partial<Store> | null | undefined): Problem[] {
  const problem = (message: string, accepted: string): Problem[] => [{ path: "store", message, accepted }]
  if (typeof store?.take !== "function") {
    return problem(
      `${show(store)} is not a store`,
      "a store that processes share: leasedStore(redisStore({ client }))",
    )
  }
  if (store.leases !== undefined) {
    return problem("is leased already", "the store without leases; remove one leasedStore()")
  }
  if (store.isShared === true) return []
  return problem(
    store.isShared === undefined ? "does not say whether processes share it" : "is not shared",
    "a store that processes share, with isShared: true; a store of this process alone needs no leases",
  )
}

function problemsOf(options: unknown): Problem[] {
  if (typeof options !== "object" || options === null) {
    const message = `${show(options)} is not an options object`
    return [{ path: "", message, accepted: `an object with ${NAMES.join(", ")}, all optional` }]
  }
  return Object.entries(options).flatMap(([path, value]) => problemOf(path, value) ?? [])
}

function problemOf(path: string, value: unknown): Problem | undefined {
  if (value === undefined) return undefined
  const shown = show(value)
  switch (path) {
    case "leaseMs":
      if (isWhole(value) && value <= LONGEST_TIMER_MS) return undefined
      return {
        path,
        message: `${shown} is not a valid time`,
        accepted: `a whole number of milliseconds from 1 to ${LONGEST_TIMER_MS}`,
      }
    case "leastLimit":
      if (isWhole(value)) return undefined
      return { path, message: `${shown} is not a valid limit`, accepted: "a whole number of units from 1" }
    case "rules":
      if (typeof value === "function") return undefined
      return {
        path,
        message: `${shown} is not a function`,
        accepted: "a function that returns true for the names of the rules to lease",
      }
    case "clock":
      if (typeof (value as Partial<Clock> | null)?.now === "function") return undefined
      return { path, message: "has no method now()", accepted: "an object whose now() returns milliseconds" }
    default: {
      const message = `is not an option of leasedStore${suggestion(path, NAMES)}`
      return { path, message, accepted: NAMES.join(", ") }
    }
  }
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1
}
