import { type Clock, steadyClock } from "../../ground/clock.ts"
import { clockOption, mustBe, type OptionCheck, requireOptions } from "../../ground/option-checks.ts"

/** The options of a memory store. All of them have defaults. */
export interface MemoryStoreOptions {
  /** Maximum number of counters, from 1 to 100 million. Each counter needs about 60 bytes. Default: a million. */
  readonly maxKeys?: number | undefined
  /** A clock that returns epoch milliseconds. Default: a clock that ignores changes of the system time. */
  readonly clock?: Clock | undefined
}

const DEFAULT_MAX_KEYS = 1_000_000
const MOST_KEYS = 100_000_000
const CHECKS: Readonly<Record<keyof MemoryStoreOptions, OptionCheck>> = {
  maxKeys: mustBe(
    "a valid number of keys",
    `a whole number from 1 to ${MOST_KEYS}`,
    (value) => Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= MOST_KEYS,
  ),
  clock: clockOption,
}

/**
 * Returns the options of a memory store with their defaults.
 * @throws {@link InvalidOptionError} with all options that are invalid or misspelled
 */
export function parseOptions(options: MemoryStoreOptions): {
  readonly maxKeys: number
  readonly clock: Clock
} {
  requireOptions("memoryStore", options, CHECKS)
  const { maxKeys = DEFAULT_MAX_KEYS, clock = steadyClock } = options
  return { maxKeys, clock }
}
