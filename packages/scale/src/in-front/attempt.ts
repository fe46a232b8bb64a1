import type { MaybePromise } from "@sluice/core/kit"

/** Calls, and passes on the result or the error: at once, or when the promise has settled. */
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
