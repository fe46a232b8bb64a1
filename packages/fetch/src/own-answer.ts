import type { GuardOptions, RejectionAnswer } from "@sluice/core"
import type { RequestWith } from "./context.ts"
import type { GuardedOptions, OnFetchRejected } from "./options.ts"

/** The responses that `onRejected` has returned. */
export type OwnAnswers = WeakMap<Request, Response>

/**
 * Returns the options for the guard, which does not know the fetch API. A `Response` that `onRejected` returns is kept
 * in `ownAnswers`.
 */
export function keepAnswers<Context>(
  options: GuardedOptions<Context>,
  ownAnswers: OwnAnswers,
): GuardOptions<RequestWith<Context>, Context> {
  if (!("onRejected" in options) || typeof options.onRejected !== "function") {
    return options as GuardOptions<RequestWith<Context>, Context>
  }
  const { onRejected, ...others } = options
  return { ...others, onRejected: keeping(onRejected, ownAnswers) }
}

function keeping<Context>(onRejected: OnFetchRejected<Context>, ownAnswers: OwnAnswers) {
  return async (
    ...refused: Parameters<OnFetchRejected<Context>>
  ): Promise<RejectionAnswer | false | undefined> => {
    const own = await onRejected(...refused)
    if (!isResponse(own)) return own
    ownAnswers.set(refused[0], own)
    return false
  }
}

/** Does not use `instanceof`, because some servers replace the global `Response`. */
function isResponse(answer: Response | RejectionAnswer | undefined): answer is Response {
  return typeof (answer?.headers as Partial<Headers> | undefined)?.get === "function"
}

/** Returns the answer as a response. A status such as 204 allows no body, not even an empty one. */
export function toResponse({ status, headers, body }: RejectionAnswer): Response {
  return new Response(body === "" ? null : body, {
    status,
    headers: headers.map(([name, value]) => [name, value]),
  })
}
