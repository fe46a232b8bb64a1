import { validateHeaderName, validateHeaderValue } from "node:http"
import type { Decision } from "../../decision/decision.ts"
import type { HeaderLine, Rejection, RejectionAnswer } from "../../ground/answer.ts"
import { textOf } from "../../ground/errors.ts"
import { isThenable, type MaybePromise } from "../../ground/maybe-promise.ts"
import type { Warner } from "../../ground/warnings.ts"
import type { OnRejected } from "../../limiter/options/answer-options.ts"
import { copyOf } from "../rejection/own-body.ts"

type Members = Readonly<Partial<Record<keyof RejectionAnswer, unknown>>>

/**
 * A function that returns the response to a refused client: the standard response or the app's own response. Returns
 * undefined if nothing must be sent, for example because `hasAnswered` returns true after `onRejected`.
 */
export type RejectionHandler = (
  standard: Rejection,
  request: unknown,
  decision: Decision,
  response: unknown,
  hasAnswered?: () => boolean,
) => MaybePromise<RejectionAnswer | undefined>

/**
 * Returns a handler that calls the app's `onRejected`. If `onRejected` returns a string or an object that is not a
 * valid response, the handler warns and returns the standard response. If `onRejected` throws or rejects, the handler
 * rejects.
 */
export function compileRejectionHandler(
  onRejected: OnRejected<unknown> | undefined,
  warner: Warner,
): RejectionHandler {
  if (onRejected === undefined) return (standard) => standard
  return (standard, request, decision, response, hasAnswered) => {
    const pick = (own: unknown): RejectionAnswer | undefined => {
      if (own === false || hasAnswered?.() === true) return undefined
      const fault = faultOf(own)
      if (fault === undefined) return withoutForbidden(withLastLines(own as RejectionAnswer))
      if (isMeant(own) && own !== response) {
        const message = `onRejected returned a response that cannot be sent: ${fault}. The standard response is sent. Return an object with status, headers and body, or false if onRejected answers by itself.`
        warner.once("SLUICE_CALLBACK_FAILED", message, fault)
      }
      return standard
    }
    try {
      const own: unknown = onRejected(request, copyOf(standard), decision, response)
      // Do not await Fastify's reply. The reply's `then` resolves only when the reply ends, so awaiting a reply that
      // has not been sent would never end.
      return own !== response && isThenable(own) ? Promise.resolve(own).then(pick, fail) : pick(own)
    } catch (error) {
      return fail(error)
    }
  }
}

/** Rejects with an object, because frameworks would pass the request on after an error such as undefined or "route". */
async function fail(error: unknown): Promise<never> {
  throw typeof error === "object" && error !== null
    ? error
    : new TypeError(`onRejected threw a value that is not an Error: ${textOf(error)}`)
}

/**
 * Returns the response with only the last line of each header name, because frameworks treat repeated headers
 * differently. Keeps every cookie, because each cookie needs its own line (RFC 6265, section 3). Adapters add these
 * cookies to the cookies that the app has set.
 */
function withLastLines(answer: RejectionAnswer): RejectionAnswer {
  const lines = new Map<string, HeaderLine>()
  const cookies: HeaderLine[] = []
  for (const line of answer.headers) {
    const name = line[0].toLowerCase()
    if (name === "set-cookie") cookies.push([SET_COOKIE, line[1]])
    else lines.set(name, line)
  }
  return { status: answer.status, headers: [...lines.values(), ...cookies], body: answer.body }
}

/** The spelling of the header name with which adapters compare names. */
const SET_COOKIE = "Set-Cookie"

/** Statuses that have no content: RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5. */
const WITHOUT_BODY: readonly number[] = [204, 205, 304]

/**
 * Removes a body that HTTP forbids for the status, because the client would read the body as the start of the next
 * response.
 */
function withoutForbidden(answer: RejectionAnswer): RejectionAnswer {
  if (!WITHOUT_BODY.includes(answer.status)) return answer
  const headers = answer.headers.filter(([name]) => !/^content-(type|length)$/i.test(name))
  return { status: answer.status, headers, body: "" }
}

/**
 * Whether the value is meant as a response, valid or not. `onRejected` may also return a meaningless number or
 * boolean, or Node's response, as `(req, …, res) => res.set("X-Own", "yes")` does.
 */
function isMeant(own: unknown): boolean {
  return typeof own === "string" || (typeof own === "object" && own !== null && !("headersSent" in own))
}

/**
 * Returns the reason why Node could not send the response. Undefined if Node can send it. With an invalid response,
 * Node would throw into the app, or end the process with an unhandled rejection.
 */
function faultOf(own: unknown): string | undefined {
  if (typeof own !== "object") return "it is not an object"
  const { status, headers, body } = (own ?? {}) as Members
  const isFinal = Number.isInteger(status) && (status as number) >= 200 && (status as number) <= 599
  if (!isFinal) return "its status is not a whole number from 200 to 599"
  const isList = Array.isArray(headers) && headers.every(isLine)
  if (!isList) return "its headers are not a list of [name, value] pairs that HTTP allows"
  return typeof body === "string" ? undefined : "its body is not a string"
}

function isLine(line: unknown): boolean {
  if (!Array.isArray(line) || typeof line[1] !== "string") return false
  let isSendable = false
  try {
    validateHeaderName(line[0])
    validateHeaderValue(line[0], line[1])
    isSendable = true
  } catch {
    // Ignore the error, because `faultOf` describes the fault.
  }
  return isSendable
}
