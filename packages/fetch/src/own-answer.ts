import type { OnRejected, RejectionAnswer } from "@sluice/core"
import type { GuardOptions } from "@sluice/core/adapters"
import type { RequestWith } from "./context.ts"
import type { FetchLimiterOptions, GuardedOptions } from "./options.ts"

/** The responses that `onRejected` has returned. */
export type OwnAnswers = WeakMap<Request, Response>

/**
 * Returns the options for the guard, which does not know the fetch API. A `Response` that `onRejected` returns is
 * stored in `ownAnswers`.
 */
export function keepAnswers<Context>(
  options: GuardedOptions<Context>,
  ownAnswers: OwnAnswers,
): GuardOptions<RequestWith<Context>, Context> {
  const { onRejected } = options as FetchLimiterOptions<Context>
  if (typeof onRejected !== "function") return options as GuardOptions<RequestWith<Context>, Context>
  const keeping: OnRejected<RequestWith<Context>, Context> = async (...refused) => {
    const own = await onRejected(...refused)
    if (!isResponse(own)) return own
    ownAnswers.set(refused[0], own)
    return false
  }
  return { ...(options as FetchLimiterOptions<Context>), onRejected: keeping }
}

/** True if the value is a `Response`. Does not use `instanceof`, because some servers replace the global class. */
function isResponse(answer: Response | RejectionAnswer | undefined): answer is Response {
  return typeof (answer?.headers as Partial<Headers> | undefined)?.get === "function"
}

/**
 * Converts the response to a `Response` of the fetch API. A status such as 204 allows no body, not even an empty one.
 */
export function toResponse({ status, headers, body }: RejectionAnswer): Response {
  return new Response(body === "" ? null : body, {
    status,
    headers: headers.map(([name, value]) => [name, value]),
  })
}
