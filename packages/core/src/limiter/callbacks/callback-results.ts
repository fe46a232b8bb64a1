import type { MaybePromise } from "../../ground/maybe-promise.ts"
import type { Callback } from "./callback.ts"

/** How many units of each kind a call takes, by the name of the unit. */
export type Amounts = ReadonlyMap<string, number>

const PENDING = Symbol("pending")

interface Result {
  readonly callback: Callback<unknown>
  readonly value: unknown
  readonly before: Result | undefined
}

/** The state of a request after a function has returned a promise. */
interface Later {
  /** The results by callback. {@link PENDING} until the promise is settled. */
  readonly results: Map<Callback<unknown>, unknown>
  /** The promises that are not awaited yet. The promises never reject. */
  pending: Promise<void>[]
  /** Number of times that `resultOf` was called for a pending result. */
  misses: number
}

/**
 * The results of the app's functions for one request. Rules are checked by synchronous code, so the result of a
 * function that returns a promise is undefined at first. The code runs again when the promise has settled. It reuses
 * the known results, so no function is called twice.
 */
export class CallbackResults<Request = unknown> {
  // One object is created per request. For speed, it has no private names, and only the constructor adds fields.
  /** The request that the functions receive. */
  declare readonly request: Request
  /** The amounts that the call itself gives. They replace the results of functions. */
  declare readonly amounts: Amounts | undefined
  /** The latest result, linked to the results before it. Undefined once `later` is set. */
  declare private latest: Result | undefined
  /** Set once a function has returned a promise. */
  declare private later: Later | undefined

  /** Reuses the results in `known` if one of its functions has returned a promise. */
  constructor(request: Request, amounts?: Amounts, known?: CallbackResults) {
    this.request = request
    this.amounts = amounts
    this.latest = undefined
    this.later =
      known?.later === undefined
        ? undefined
        : { results: new Map(known.later.results), pending: [], misses: 0 }
  }

  /** True if a result is undefined because its promise is pending. */
  get isPending(): boolean {
    return this.later !== undefined && this.later.pending.length > 0
  }

  /** Number of times that a result was undefined because its promise was pending. */
  get misses(): number {
    return this.later === undefined ? 0 : this.later.misses
  }

  /** Returns the result of a callback, or undefined while its promise is pending. */
  resultOf<Value>(callback: Callback<Value>): Value | undefined {
    const { later } = this
    if (later?.results.has(callback) === true) return this.known(later, callback)
    const value = callback.outcome(this.request)
    if (value instanceof Promise) return this.await(callback, value)
    if (later === undefined) this.latest = { callback, value, before: this.latest }
    else later.results.set(callback, value)
    return value
  }

  /**
   * Returns the result of `read` once no callback is pending. Returns a promise only if `read` needs a pending
   * callback.
   */
  complete<Read>(read: () => Read): MaybePromise<Read> {
    const made = read()
    return this.isPending ? this.completeLater(read) : made
  }

  private async completeLater<Read>(read: () => Read): Promise<Read> {
    const later = this.later as Later
    for (;;) {
      const { pending } = later
      later.pending = []
      await Promise.all(pending)
      const made = read()
      if (later.pending.length === 0) return made
    }
  }

  private known<Value>(later: Later, callback: Callback<Value>): Value | undefined {
    const result = later.results.get(callback)
    if (result !== PENDING) return result as Value
    later.misses++
    return undefined
  }

  private await<Value>(callback: Callback<Value>, value: Promise<Value>): undefined {
    if (this.later === undefined) {
      const results = new Map<Callback<unknown>, unknown>()
      for (let result = this.latest; result !== undefined; result = result.before)
        results.set(result.callback, result.value)
      this.latest = undefined
      this.later = { results, pending: [], misses: 0 }
    }
    const { later } = this
    later.misses++
    later.results.set(callback, PENDING)
    later.pending.push(value.then((settled) => void later.results.set(callback, settled)))
  }
}
