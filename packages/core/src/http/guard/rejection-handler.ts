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
 * A function that returns what to send to a refused client: the standard answer or another one.
 * Undefined means to send nothing.
 */
export type RejectionHandler = (
  standard: Rejection,
  request: unknown,
  decision: Decision,
  response: unknown,
) => MaybePromise<RejectionAnswer | undefined>

/**
 * Returns a handler that calls the app's `onRejected`. If `onRejected` throws, rejects or returns no valid answer, the
 * handler returns the standard answer.
 */
export function compileRejectionHandler(
  onRejected: OnRejected<unknown> | undefined,
  warner: Warner,
): RejectionHandler {
  if (onRejected === undefined) return (standard) => standard
  return (standard, request, decision, response) => {
    const failed = (error: unknown): Rejection => {
      warner.once(
        "SLUICE_CALLBACK_FAILED",
        `onRejected failed: ${textOf(error)}. The standard answer is sent, unless onRejected had already begun a response.`,
        "onRejected",
        error,
      )
      return standard
    }
    const pick = (own: unknown): RejectionAnswer | undefined => {
      if (own === false) return undefined
      const fault = faultOf(own)
      if (fault === undefined) return withoutForbidden(withLastLines(own as RejectionAnswer))
      if (isMeant(own)) {
        const message = `onRejected returned an answer that cannot be sent: ${fault}. The standard answer is sent.`
        warner.once("SLUICE_CALLBACK_FAILED", message, fault)
      }
      return standard
    }
    try {
      const own: unknown = onRejected(request, copyOf(standard), decision, response)
      // Fastify's reply has a `then` that resolves when the reply ends. Awaiting a reply that has not
      // been sent would never end.
      return own !== response && isThenable(own) ? Promise.resolve(own).then(pick, failed) : pick(own)
    } catch (error) {
      return failed(error)
    }
  }
}

/**
 * Returns the answer with only the last line of each header name, because frameworks treat repeated headers
 * differently. It keeps every cookie, because each needs a line (RFC 6265, section 3). Adapters add them to the
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
 * Whether the value is meant as an answer, valid or not. `onRejected` may return anything:
 * `(req, …, res) => res.status(429).end()` returns the response itself, and `(ctx) => (ctx.body = …)` a body.
 */
function isMeant(own: unknown): boolean {
  if (typeof own !== "object" || own === null || Object.getPrototypeOf(own) !== Object.prototype) return false
  const members = ["status", "headers", "body"].filter((name) => name in own)
  return members.length > 1 && typeof (own as Members).status !== "function"
}

/**
 * Returns why Node could not send the answer; undefined if it can. If it were sent, Node would throw into the app, or
 * end the process with an unhandled rejection.
 */
function faultOf(own: unknown): string | undefined {
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
