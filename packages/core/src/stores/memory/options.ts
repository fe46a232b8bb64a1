import { inspect } from "node:util"
import { type Clock, steadyClock } from "../../ground/clock.ts"
import { InvalidOptionError, type Problem } from "../../ground/errors.ts"

/** The options of a memory store. All of them have defaults. */
export interface MemoryStoreOptions {
  /** Maximum number of counters, at about 60 bytes each: 1 to 100 million. Default: a million. */
  readonly maxKeys?: number | undefined
  /** A clock of epoch milliseconds. Default: a clock that is not affected by changes of the system time. */
  readonly clock?: Clock | undefined
}

const DEFAULT_MAX_KEYS = 1_000_000
const MOST_KEYS = 100_000_000

/**
 * Returns the options of a memory store with their defaults.
 * @throws {@link InvalidOptionError} with all options that are invalid or misspelled
 */
export function parseOptions(options: MemoryStoreOptions): {
  readonly maxKeys: number
  readonly clock: Clock
} {
  const problems = problemsOf(options)
  if (problems.length > 0) throw new InvalidOptionError(problems)
  const { maxKeys = DEFAULT_MAX_KEYS, clock = steadyClock } = options
  return { maxKeys, clock }
}

function problemsOf(options: unknown): Problem[] {
  if (typeof options !== "object" || options === null) {
    return [
      {
        path: "",
        message: `${inspect(options)} is not an options object`,
        accepted: "an object with maxKeys and clock, both optional",
      },
    ]
  }
  const problems: Problem[] = []
  for (const [path, value] of Object.entries(options)) {
    if (value === undefined) continue
    if (path === "maxKeys") {
      if (Number.isSafeInteger(value) && value >= 1 && value <= MOST_KEYS) continue
      const accepted = `a whole number from 1 to ${MOST_KEYS}`
      problems.push({
        path,
        message: `${inspect(value, { depth: 0 })} is not a valid number of keys`,
        accepted,
      })
    } else if (path === "clock") {
      if (typeof value?.now === "function") continue
      problems.push({
        path,
        message: "has no method now()",
        accepted: "an object whose now() returns epoch milliseconds",
      })
    } else {
      problems.push({ path, message: "is not an option of memoryStore", accepted: "maxKeys, clock" })
    }
  }
  return problems
}
