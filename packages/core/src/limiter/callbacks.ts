import { textOf } from "../ground/errors.ts"
import { ignoreRejection } from "../ground/maybe-promise.ts"
import { isUnits } from "../ground/policy.ts"
import { show } from "../ground/show.ts"
import type { Warner } from "../ground/warnings.ts"

/**
 * Compiles the app's function that returns the units of a request. If it throws or returns an invalid value, the
 * request counts 1 unit. The first such failure is logged.
 */
export function compileUnits<Request>(
  cost: (request: Request) => unknown,
  warner: Warner,
): (request: Request) => number {
  return (request) => {
    const { value, failure } = called(cost, request)
    if (isUnits(value)) return value
    warner.once(
      "SLUICE_INVALID_COST",
      `The cost function ${failure ?? yieldedText(value)}. It must return a whole number from 0 up. Such a request counts as 1 unit.`,
    )
    return 1
  }
}

/**
 * Compiles one of the app's boolean functions. If it throws or returns anything but a boolean, the result is false, and
 * a warning is logged once that ends with `otherwise`. A promise is not accepted: it is truthy in JavaScript, so an
 * async `skip` would disable the limiter.
 */
export function compileTest<Args extends unknown[]>(
  name: "skip" | "refundWhen" | `signal of rule "${string}"`,
  test: ((...args: Args) => unknown) | undefined,
  otherwise: string,
  warner: Warner,
): (...args: Args) => boolean {
  if (test === undefined) return () => false
  return (...args) => {
    const { value, failure } = called(test, ...args)
    if (typeof value === "boolean") return value
    warner.once(
      "SLUICE_CALLBACK_FAILED",
      `${name} ${failure ?? yieldedText(value)}. It must return true or false, not a promise; otherwise ${otherwise}.`,
      name,
    )
    return false
  }
}

/** Returns a callback's value as text for a message. It keeps 5, "5" and 5n distinguishable. */
export function yieldedText(value: unknown): string {
  return `returned ${typeof value === "string" || typeof value === "bigint" ? show(value) : textOf(value)}`
}

/** Calls one of the app's functions. Returns its value, or the text of its failure. */
export function called<Args extends unknown[]>(
  callback: (...args: Args) => unknown,
  ...args: Args
): { readonly value?: unknown; readonly failure?: string } {
  try {
    const value = callback(...args)
    ignoreRejection(value)
    return { value }
  } catch (error) {
    return { failure: `failed: ${textOf(error)}` }
  }
}
