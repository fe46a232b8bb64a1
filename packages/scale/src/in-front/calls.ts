import type { MaybePromise } from "@sluice/core/kit"

/** Calls in flight whose replies may return or take units. */
export class CallsInFlight {
  readonly #calls = new Set<Promise<unknown>>()

  add(call: Promise<unknown>): void {
    this.#calls.add(call)
    const settled = (): void => void this.#calls.delete(call)
    call.then(settled, settled)
  }

  get isEmpty(): boolean {
    return this.#calls.size === 0
  }

  /** Resolves when the calls in flight have ended, and also the calls that their replies cause. */
  async settled(): Promise<void> {
    for (let i = 0; i < 2; i++) await Promise.allSettled([...this.#calls])
  }
}

/**
 * Makes the call, and then calls `done` with its result or `failed` with its error. Does so immediately if the call
 * returns no promise.
 */
export function attempt<Result, Outcome>(
  call: () => MaybePromise<Result>,
  done: (result: Result) => Outcome,
  failed: (error: unknown) => Outcome,
): MaybePromise<Outcome> {
  let result: MaybePromise<Result>
  try {
    result = call()
  } catch (error) {
    return failed(error)
  }
  return result instanceof Promise ? result.then(done, failed) : done(result)
}
