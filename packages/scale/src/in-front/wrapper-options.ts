import { type Clock, InvalidOptionError, type Problem, type Store } from "@sluice/core"
import { LONGEST_TIMER_MS, show, suggestion } from "@sluice/core/kit"

/** Returns what is wrong with the value of an option; undefined if nothing is. The value is not undefined. */
export type OptionCheck = (value: unknown) => Omit<Problem, "path"> | undefined

/** Accepts a time: a whole number of milliseconds from 1 to `mostMs`. */
export function timeUpTo(mostMs: number): OptionCheck {
  return (value) =>
    isWhole(value) && value <= mostMs
      ? undefined
      : {
          message: `${show(value)} is not a valid time`,
          accepted: `a whole number of milliseconds from 1 to ${mostMs}`,
        }
}

/** Accepts any time that a timer can wait. */
export const timeMs = timeUpTo(LONGEST_TIMER_MS)

/** Accepts a function that selects rules by their names. */
export const ruleSelector: OptionCheck = (value) =>
  typeof value === "function"
    ? undefined
    : {
        message: `${show(value)} is not a function`,
        accepted: "a function that returns true for the names of the selected rules",
      }

/** Accepts a clock. */
export const clock: OptionCheck = (value) =>
  typeof (value as Partial<Clock> | null)?.now === "function"
    ? undefined
    : { message: "has no method now()", accepted: "an object whose now() returns milliseconds" }

/** Accepts a whole number from 1 up: `wholeNumber("limit", "units")`. */
export function wholeNumber(name: string, units: string): OptionCheck {
  return (value) =>
    isWhole(value)
      ? undefined
      : { message: `${show(value)} is not a valid ${name}`, accepted: `a whole number of ${units} from 1` }
}

/** Accepts a store that processes share. `example` is a correct call. `problemOf` looks for more problems. */
export function sharedStore(
  example: string,
  problemOf: (store: Store) => ReturnType<OptionCheck> = () => undefined,
): OptionCheck {
  return (value) => {
    const store = value as Partial<Store> | null | undefined
    if (typeof store?.take !== "function") {
      return {
        message: `${show(value)} is not a store`,
        accepted: `a store that processes share: ${example}`,
      }
    }
    if (store.isShared === true) return problemOf(store as Store)
    return {
      message: store.isShared === undefined ? "does not say whether processes share it" : "is not shared",
      accepted: `a store that processes share, with isShared: true: ${example}`,
    }
  }
}

/** Returns the problem of a value at a place; an empty list if there is none. */
export function problemAt(path: string, value: unknown, check: OptionCheck): Problem[] {
  const problem = check(value)
  return problem === undefined ? [] : [{ path, ...problem }]
}

/**
 * Throws {@link InvalidOptionError} with the problems of all options that are invalid or misspelled, after `others`.
 * `title` names the function: "leasedStore".
 */
export function requireOptions(
  title: string,
  options: unknown,
  checks: Readonly<Record<string, OptionCheck>>,
  others: readonly Problem[],
): void {
  const problems = [...others, ...problemsOf(title, options, checks)]
  if (problems.length > 0) throw new InvalidOptionError(problems)
}

function problemsOf(
  title: string,
  options: unknown,
  checks: Readonly<Record<string, OptionCheck>>,
): Problem[] {
  const names = Object.keys(checks)
  const accepted = names.join(", ")
  if (typeof options !== "object" || options === null) {
    const message = `${show(options)} is not an options object`
    return [{ path: "", message, accepted: `an object with ${accepted}` }]
  }
  return Object.entries(options).flatMap(([path, value]): Problem[] => {
    if (value === undefined) return []
    // An option may be called "toString".
    const check = Object.hasOwn(checks, path) ? checks[path] : undefined
    if (check !== undefined) return problemAt(path, value, check)
    return [{ path, message: `is not an option of ${title}${suggestion(path, names)}`, accepted }]
  })
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1
}
