import { textOf } from "../../ground/errors.ts"
import { ignoreRejection } from "../../ground/maybe-promise.ts"
import { show } from "../../ground/show.ts"
import type { Warner } from "../../ground/warnings.ts"

/**
 * Compiles one of the app's boolean functions whose result is needed immediately. If it throws or returns anything
 * but a boolean, the result is false, and one warning is logged, which ends with `otherwise`. A promise is not
 * accepted, because every promise is truthy in JavaScript.
 */
export function compileTest<Args extends unknown[]>(
  name: "refundWhen" | `signal of rule "${string}"`,
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

/** Returns a callback's value as text for a message. The values 5, "5" and 5n have different texts. */
export function yieldedText(value: unknown): string {
  return `returned ${typeof value === "string" || typeof value === "bigint" ? show(value) : textOf(value)}`
}

/** Calls one of the app's functions, and returns its value or the text of its failure. */
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
