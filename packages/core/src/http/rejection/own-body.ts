import type { Decision } from "../../decision/decision.ts"
import { type Rejection, type RejectionText, rejectionText } from "../../ground/answer.ts"
import { isThenable } from "../../ground/maybe-promise.ts"
import type { Warner } from "../../ground/warnings.ts"
import { called, yieldedText } from "../../limiter/callbacks/compile-test.ts"

/** The app's function that returns the body of a refusal, and the media type of the body. */
export interface BodyFunction {
  readonly body: (request: unknown, rejection: Rejection, decision: Decision) => unknown
  /** The media type of the body. Undefined if the media type depends on the value that the function returns. */
  readonly contentType?: string
}

/**
 * Returns the standard response with the body that the app's function returns. The function must return a string, an
 * object or an array. If the function throws or returns another value, returns the standard response and logs a
 * warning once.
 */
export function withOwnBody(
  standard: Rejection,
  { body, contentType }: BodyFunction,
  request: unknown,
  decision: Decision,
  warner: Warner,
): Rejection {
  const { value, failure } = called(body, request, copyOf(standard), decision)
  const own = bodyOf(value, contentType)
  if (own !== undefined) {
    const type = ["Content-Type", own.contentType] as const
    const headers = standard.headers.map((line) => (line[0] === "Content-Type" ? type : line))
    return { status: standard.status, headers, body: own.text }
  }
  const name = `rejection.body of rule "${decision.policy}"`
  warner.once(
    "SLUICE_CALLBACK_FAILED",
    `${name} ${failure ?? yieldedText(value)}. It must return a string, an object or an array, not a promise; otherwise the standard response is sent.`,
    name,
  )
  return standard
}

/**
 * Returns a copy for the app, which might modify it. The original must stay unchanged, because other refusals share
 * it.
 */
export function copyOf({ status, headers, body }: Rejection): Rejection {
  return { status, headers: headers.map(([name, value]) => [name, value]), body }
}

function bodyOf(value: unknown, contentType: string | undefined): RejectionText | undefined {
  const isData = typeof value === "string" || (typeof value === "object" && value !== null)
  if (!isData || isThenable(value)) return undefined
  try {
    return rejectionText(value, contentType)
  } catch {
    // JSON cannot represent the value.
    return undefined
  }
}
