import type { Clock } from "../../ground/clock.ts"
import { textOf } from "../../ground/errors.ts"
import { isThenable, type MaybePromise } from "../../ground/maybe-promise.ts"
import { isUnits } from "../../ground/policy.ts"
import { beforeDeadline } from "../../ground/time.ts"
import type { Warner } from "../../ground/warnings.ts"
import { yieldedText } from "./compile-test.ts"

/** The deadline of each function of the app, the clock that measures it, and where failures are logged. */
export interface CallbackContext {
  readonly callbackTimeoutMs: number
  readonly clock: Clock
  readonly warner: Warner
}

/** The valid results of a function of the app, and what applies if the function fails. */
export interface CallbackMeaning<Value> {
  /** Returns the value that a result stands for. Throws for an invalid result: see `wrong`. */
  read(result: unknown): Value
  /** Logs a warning, and returns the value that applies instead. `what` continues a sentence: "returned 5". */
  failed(what: string, cause?: unknown): Value
}

/** The failure of a function that returned an invalid value, or none in time. */
class WrongResult extends Error {}

/** A function of the app that a decision needs. The function returns a value, or a promise of it. */
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
   * Calls the function. Returns what applies to the request; a promise only if the function returned one. Never throws
   * and never rejects.
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
 * Creates the callback that returns the units of a request. If it fails, the request counts 1 unit. More units than can
 * be counted exactly are more than any rule admits.
 */
export function costCallback(cost: (request: never) => unknown, context: CallbackContext): Callback<number> {
  return new Callback(cost as (request: unknown) => unknown, context, {
    read(result) {
      // A client that asks for more than can be counted must not pay for 1 unit.
      const units = typeof result === "number" && result > MAX ? MAX : result
      return isUnits(units) ? units : wrong(result)
    },
    failed(what, cause) {
      context.warner.once(
        "SLUICE_INVALID_COST",
        `The cost function ${what}. It must return 0 or a positive whole number, or a promise of one. Such a request counts as 1 unit.`,
        "",
        cause,
      )
      return 1
    },
  })
}

/**
 * Creates the callback of a boolean function. If it fails, the result is `otherwise`, and a warning is logged once that
 * ends with `consequence`.
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
