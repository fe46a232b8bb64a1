import type { Clock } from "../../ground/clock.ts"
import { textOf } from "../../ground/errors.ts"
import { isThenable, type MaybePromise } from "../../ground/maybe-promise.ts"
import { isUnits, REQUESTS } from "../../ground/policy.ts"
import { beforeDeadline } from "../../ground/time.ts"
import type { Warner } from "../../ground/warnings.ts"
import { yieldedText } from "./compile-test.ts"

/** The timeout of the app's functions, the clock that measures it, and the warner that logs failures. */
export interface CallbackContext {
  readonly callbackTimeoutMs: number
  readonly clock: Clock
  readonly warner: Warner
}

/** The valid results of one of the app's functions, and the default if the function fails. */
export interface CallbackMeaning<Value> {
  /** Returns the value of a valid result. Calls `wrong` for an invalid result, which throws. */
  read(result: unknown): Value
  /** Logs a warning, and returns the default. `what` completes the sentence of the warning: "returned 5". */
  failed(what: string, cause?: unknown): Value
}

/** The failure of a function that returned an invalid value, or whose promise did not settle in time. */
class WrongResult extends Error {}

/** One of the app's functions that a decision calls. The function returns a value, or a promise of a value. */
export class Callback<Value> {
  readonly #call: (request: unknown) => unknown
  readonly #meaning: CallbackMeaning<Value>
  readonly #context: CallbackContext

  constructor(
    call: (request: unknown) => unknown,
    context: CallbackContext,
    meaning: CallbackMeaning<Value>,
  ) {
    this.#call = call
    this.#context = context
    this.#meaning = meaning
  }

  /**
   * Calls the function. Returns its valid result, or the default. Returns a promise only if the function did. Never
   * throws and never rejects.
   */
  outcome(request: unknown): MaybePromise<Value> {
    try {
      const call = this.#call
      const result = call(request)
      const isObject = typeof result === "object" || typeof result === "function"
      return isObject && isThenable(result) ? this.#later(result) : this.#meaning.read(result)
    } catch (error) {
      return this.#fail(error)
    }
  }

  async #later(result: PromiseLike<unknown>): Promise<Value> {
    try {
      return this.#meaning.read(await this.#inTime(result))
    } catch (error) {
      return this.#fail(error)
    }
  }

  #inTime(result: PromiseLike<unknown>): Promise<unknown> {
    const { callbackTimeoutMs: ms, clock } = this.#context
    const late = () => Promise.reject(new WrongResult(`did not settle within ${ms} ms`))
    return beforeDeadline(result, ms, late, true, clock)
  }

  #fail(error: unknown): Value {
    return error instanceof WrongResult
      ? this.#meaning.failed(error.message)
      : this.#meaning.failed(`failed: ${textOf(error)}`, error)
  }
}

const { MAX_SAFE_INTEGER: MAX } = Number

/**
 * Creates the callback that returns how many units of one kind a request takes. If the function fails, the request takes
 * 1 unit. A result above the largest safe integer becomes that integer, which no rule admits.
 */
export function amountCallback(
  unit: string,
  amount: (request: never) => unknown,
  context: CallbackContext,
): Callback<number> {
  const name = unit === REQUESTS ? "The cost function" : `The function of the unit "${unit}"`
  return new Callback(amount as (request: unknown) => unknown, context, {
    read(result) {
      // Otherwise a request that is too expensive to count exactly would count as 1 unit.
      const units = typeof result === "number" && result > MAX ? MAX : result
      if (units === undefined && unit !== REQUESTS) return warnOfUnit(unit, context.warner)
      return isUnits(units) ? units : wrong(result)
    },
    failed(what, cause) {
      context.warner.once(
        "SLUICE_INVALID_COST",
        `${name} ${what}. It must return 0 or a positive whole number, or a promise of one. Such a request counts as 1 unit.`,
        unit,
        cause,
      )
      return 1
    },
  })
}

/** Warns that nothing says how many of a unit a request takes. Returns the amount that applies. */
export function warnOfUnit(unit: string, warner: Warner): number {
  // Do not build the message for each request.
  if (warner.has("SLUICE_UNIT_UNKNOWN", unit)) return 1
  const named = JSON.stringify(unit)
  warner.once(
    "SLUICE_UNIT_UNKNOWN",
    `A rule counts ${named}, but nothing says how many a request takes, so each request takes 1. ` +
      `Add ${named} to the limiter's option units, or pass units: { ${named}: 20 } with each call.`,
    unit,
  )
  return 1
}

/**
 * Creates the callback of a boolean function. If the function fails, the result is `otherwise`, and one warning is
 * logged, which ends with `consequence`.
 */
export function testCallback(
  name: string,
  test: (request: never) => unknown,
  otherwise: boolean,
  consequence: string,
  context: CallbackContext,
): Callback<boolean> {
  return new Callback(test as (request: unknown) => unknown, context, {
    read: (result) => (typeof result === "boolean" ? result : wrong(result)),
    failed(what, cause) {
      const message = `${name} ${what}. It must return true or false, or a promise of it; otherwise ${consequence}.`
      context.warner.once("SLUICE_CALLBACK_FAILED", message, name, cause)
      return otherwise
    },
  })
}

/** Throws the failure of a function that returned an invalid value. */
export function wrong(result: unknown): never {
  throw new WrongResult(yieldedText(result))
}
