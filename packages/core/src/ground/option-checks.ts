import type { Clock } from "./clock.ts"
import { InvalidOptionError, type Problem } from "./errors.ts"
import { hintFor } from "./hints.ts"
import { show, suggestion } from "./show.ts"
import { LONGEST_TIMER_MS } from "./time.ts"
import type { Logger } from "./warnings.ts"

/**
 * Returns a description of the problem with an option's value, or undefined if the value is valid. Not called for
 * undefined values.
 */
export type OptionCheck = (value: unknown) => Omit<Problem, "path"> | undefined

/** Returns a check with a message of the form "… is not …": `5 is not a clock`. */
export function mustBe(noun: string, accepted: string, isGood: (value: unknown) => boolean): OptionCheck {
  return (value) => {
    if (isGood(value)) return undefined
    return { message: value === undefined ? "is missing" : `${show(value)} is not ${noun}`, accepted }
  }
}

/** Returns a check whose message also contains a hint, if the value has another type or spelling. */
export function mustBeWithHint(
  noun: string,
  accepted: string,
  isGood: (value: unknown) => boolean,
): OptionCheck {
  return (value) =>
    isGood(value)
      ? undefined
      : { message: `${show(value)} is not ${noun}${hintFor(value, noun, accepted)}`, accepted }
}

/** Accepts an interval that is not too long for a timer. */
export const interval: OptionCheck = mustBe(
  "an interval",
  `a whole number of milliseconds from 1 to ${LONGEST_TIMER_MS}`,
  (value) => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= LONGEST_TIMER_MS,
)

/** Accepts a clock. A function with a method `now`, such as `Date`, is also a valid clock. */
export const clockOption: OptionCheck = mustBe(
  "a clock",
  "{ now(): epoch milliseconds, wait?(ms, signal) }",
  (value) => typeof (value as Partial<Clock> | null)?.now === "function",
)

/** Accepts a logger. */
export const loggerOption: OptionCheck = mustBe(
  "a logger",
  "an object with warn() and error(), such as pino's",
  (value) => {
    const { warn, error } = (value ?? {}) as Partial<Logger>
    return typeof warn === "function" && typeof error === "function"
  },
)

/** Accepts a positive whole number: `wholeNumber("limit", "units")`. */
export function wholeNumber(name: string, units: string): OptionCheck {
  return mustBe(
    `a valid ${name}`,
    `a positive whole number of ${units}`,
    (value) => Number.isSafeInteger(value) && (value as number) >= 1,
  )
}

/** Checks a value and returns an array with its problem. The array is empty if the value is valid. */
export function problemAt(path: string, value: unknown, check: OptionCheck): Problem[] {
  const problem = check(value)
  return problem === undefined ? [] : [{ path, ...problem }]
}

/** Throws {@link InvalidOptionError} unless the value at a place passes the check. */
export function requireValue(path: string, value: unknown, check: OptionCheck): void {
  requireNone(problemAt(path, value, check))
}

/** Throws {@link InvalidOptionError} if there are problems. */
export function requireNone(problems: readonly Problem[]): void {
  if (problems.length > 0) throw new InvalidOptionError(problems)
}

/**
 * Throws {@link InvalidOptionError} with the problems of all options that are invalid or misspelled, after `others`.
 * `title` is the name of the function, such as "leasedStore". `elsewhere` maps option names of other libraries to the
 * names of our options.
 */
export function requireOptions(
  title: string,
  options: unknown,
  checks: Readonly<Record<string, OptionCheck>>,
  others: readonly Problem[] = [],
  elsewhere: Readonly<Record<string, string>> = {},
): void {
  requireNone([...others, ...problemsOf(title, options, checks, elsewhere)])
}

function problemsOf(
  title: string,
  options: unknown,
  checks: Readonly<Record<string, OptionCheck>>,
  elsewhere: Readonly<Record<string, string>>,
): Problem[] {
  const names = Object.keys(checks)
  const accepted = names.join(", ")
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    const message = `${show(options)} is not an options object`
    return [{ path: "", message, accepted: `an object with ${accepted}` }]
  }
  const given = options as Readonly<Record<string, unknown>>
  // Also check all accepted names, because the loop finds inherited members, but not getters of a class.
  const paths: string[] = []
  for (const path in given) paths.push(path)
  return [...new Set([...paths, ...names])].flatMap((path): Problem[] => {
    const value = given[path]
    if (value === undefined) return []
    // Use `hasOwn`, because a misspelled option may be called "toString".
    const check = Object.hasOwn(checks, path) ? checks[path] : undefined
    if (check !== undefined) return problemAt(path, value, check)
    const message = `is not an option of ${title}`
    return Object.hasOwn(elsewhere, path)
      ? [{ path, message: `${message}; use "${elsewhere[path]}" instead` }]
      : [{ path, message: `${message}${suggestion(path, names)}`, accepted }]
  })
}
