import type { OnRejected, RejectionAnswer } from "@sluice/core"
import type { GuardOptions } from "@sluice/core/adapters"
import type { FetchAnswer, GuardedOptions } from "./options.ts"

/** The responses that `onRejected` has returned. */
export type OwnAnswers = WeakMap<object, Response>

/**
 * Returns the options for the guard, which does not know the fetch API. A `Response` that `onRejected` returns is
 * stored in `ownAnswers`.
 */
export function keepAnswers<Subject extends object>(
  options: GuardedOptions<Subject, (...refused: never) => FetchAnswer>,
  ownAnswers: OwnAnswers,
): GuardOptions<Subject> {
  const { onRejected, ...others } = options as {
    readonly onRejected?: (...refused: readonly unknown[]) => FetchAnswer
  }
  if (typeof onRejected !== "function") return options as GuardOptions<Subject>
  const keeping: OnRejected<Subject> = async (...refused) => {
    const own = await onRejected(...refused)
    if (!isResponse(own)) return own
    ownAnswers.set(refused[0] as Subject, own)
    return false
  }
  return { ...(others as GuardOptions<Subject>), onRejected: keeping }
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
