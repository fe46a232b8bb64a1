import { textOf } from "../ground/errors.ts"
import { ignoreRejection } from "../ground/maybe-promise.ts"
import { isUnits } from "../ground/policy.ts"
import { show } from "../ground/show.ts"
import type { Warner } from "../ground/warnings.ts"

/**
 * Compiles the app's function that yields the units of a request. A function that throws or yields anything but units counts 1, said
 * once.
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
      `The cost function ${failure ?? yieldedText(value)}. It must yield a whole number from 0 up; such a request counts 1.`,
    )
    return 1
  }
}

/**
 * What one of the app's yes-or-no functions says. One that throws or yields anything but a boolean says no, told
 * once with what that means: a promise is true in JavaScript, so an async `skip` would switch the limiter off.
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
      `${name} ${failure ?? yieldedText(value)}. It must yield true or false at once; ${otherwise}.`,
      name,
    )
    return false
  }
}

/** What a callback yielded, for a message: 5, "5" and 5n would else look the same. */
export function yieldedText(value: unknown): string {
  return `yielded ${typeof value === "string" || typeof value === "bigint" ? show(value) : textOf(value)}`
}

function called<Args extends unknown[]>(
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
