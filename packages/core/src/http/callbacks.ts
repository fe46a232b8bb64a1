import type { Warner } from "./warnings.ts"

/** Whether a value is a number of units: a whole number from 0 up. */
export function isUnits(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/**
 * The units that a request asks: a constant, or what the app's function yields. A function that throws or yields
 * anything but units counts 1, said once.
 */
export function compileUnits<Request>(
  cost: number | ((request: Request) => unknown),
  warner: Warner,
): (request: Request) => number {
  if (typeof cost === "number") return () => cost
  return (request) => {
    const { value, failure } = called(cost, request)
    if (isUnits(value)) return value
    warner.once(
      "SLUICE_INVALID_COST",
      `The cost function ${failure ?? `yielded ${String(value)}`}. It must yield a whole number from 0 up; such a request counts 1.`,
    )
    return 1
  }
}

/**
 * Whether a request is not counted, by the app's function. One that throws or yields anything but a boolean skips
 * nothing, said once: a promise is true in JavaScript, so an async function would switch the limiter off.
 */
export function compileSkip<Request>(
  skip: ((request: Request) => unknown) | undefined,
  warner: Warner,
): (request: Request) => boolean {
  if (skip === undefined) return () => false
  return (request) => {
    const { value, failure } = called(skip, request)
    if (typeof value === "boolean") return value
    warner.once(
      "SLUICE_CALLBACK_FAILED",
      `skip ${failure ?? `yielded ${String(value)}`}. It must yield true or false at once; such a request is counted.`,
      "skip",
    )
    return false
  }
}

function called<Request>(
  callback: (request: Request) => unknown,
  request: Request,
): { readonly value?: unknown; readonly failure?: string } {
  try {
    const value = callback(request)
    // Nobody waits for it, so nobody else would handle its rejection.
    if (value instanceof Promise) value.catch(() => undefined)
    return { value }
  } catch (error) {
    return { failure: `failed: ${String(error)}` }
  }
}
