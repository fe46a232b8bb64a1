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
 * A function that returns what to send to a refused client: the standard response or another one. Undefined means to
 * send nothing, for example because `hasAnswered` is true after `onRejected`.
 */
export type RejectionHandler = (
  standard: Rejection,
  request: unknown,
  decision: Decision,
  response: unknown,
  hasAnswered?: () => boolean,
) => MaybePromise<RejectionAnswer | undefined>

/**
 * Returns a handler that calls the app's `onRejected`. If that returns a string or an object that is not a valid
 * response, the handler warns and returns the standard response. If `onRejected` throws or rejects, the handler
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
      // Fastify's reply has a `then` that resolves when the reply ends. Awaiting a reply that has not
      // been sent would never end.
      return own !== response && isThenable(own) ? Promise.resolve(own).then(pick, fail) : pick(own)
    } catch (error) {
      return fail(error)
    }
  }
}

/** Rejects with an object. Frameworks would pass on the request after an error such as undefined or "route". */
async function fail(error: unknown): Promise<never> {
  throw typeof error === "object" && error !== null
    ? error
    : new TypeError(`onRejected threw a value that is not an Error: ${textOf(error)}`)
}

/**
 * Returns the response with only the last line of each header name, because frameworks treat repeated headers
 * differently. Keeps every cookie, because each needs a line (RFC 6265, section 3). Adapters add them to the
 * cookies that the app has set.
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

/** The spelling that adapters compare with. */
const SET_COOKIE = "Set-Cookie"

/** Statuses that have no content: RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5. */
const WITHOUT_BODY: readonly number[] = [204, 205, 304]

/** Removes a body that HTTP forbids, because the client would read it as the start of the next response. */
function withoutForbidden(answer: RejectionAnswer): RejectionAnswer {
  if (!WITHOUT_BODY.includes(answer.status)) return answer
  const headers = answer.headers.filter(([name]) => !/^content-(type|length)$/i.test(name))
  return { status: answer.status, headers, body: "" }
}

/**
 * Whether the value is meant as a response, valid or not. `onRejected` may return a number or a boolean without a
 * meaning, and the response of Node, as `(req, …, res) => res.set("X-Own", "yes")` does.
 */
function isMeant(own: unknown): boolean {
  return typeof own === "string" || (typeof own === "object" && own !== null && !("headersSent" in own))
}

/**
 * Returns why Node could not send the response; undefined if it can. If it were sent, Node would throw into the app, or
 * end the process with an unhandled rejection.
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
    // `faultOf` describes the fault.
  }
  return isSendable
}
