import { validateHeaderName, validateHeaderValue } from "node:http"
import { textOf } from "../errors.ts"
import type { Decision } from "../limiter/decision.ts"
import type { MaybePromise } from "../stores/store.ts"
import type { Warner } from "../warnings.ts"
import type { OnRejected } from "./options.ts"
import type { Rejection } from "./rejection.ts"

/** What to send to a refused client in place of the standard answer, or that; undefined is to send nothing. */
export type Answer = (
  standard: Rejection,
  request: unknown,
  decision: Decision,
  response: unknown,
) => MaybePromise<Rejection | undefined>

/** The answers of an app's `onRejected`. One that throws, rejects or yields no answer gives way to the standard one. */
export function compileAnswer(onRejected: OnRejected<unknown> | undefined, warner: Warner): Answer {
  if (onRejected === undefined) return (standard) => standard
  return (standard, request, decision, response) => {
    const failed = (error: unknown): Rejection => {
      warner.once(
        "SLUICE_CALLBACK_FAILED",
        `onRejected failed: ${textOf(error)}. The standard answer is sent.`,
        // Stryker disable next-line StringLiteral: any name that no other callback has
        "onRejected",
        error,
      )
      return standard
    }
    const pick = (own: unknown): Rejection | undefined =>
      own === false ? undefined : isRejection(own) ? own : standard
    try {
      const own: unknown = onRejected(request, standard, decision, response)
      // Fastify's reply has a `then` that waits for its end: one that nobody has sent would wait for ever.
      return own !== response && isThenable(own) ? Promise.resolve(own).then(pick, failed) : pick(own)
    } catch (error) {
      return failed(error)
    }
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as Partial<PromiseLike<unknown>> | null | undefined)?.then === "function"
}

/** What `onRejected` yields may be anything: `(req, …, res) => res.status(429).end()` yields the response itself. */
function isRejection(value: unknown): value is Rejection {
  if (typeof value !== "object" || value === null) return false
  const { status, headers, body } = value as Partial<Record<keyof Rejection, unknown>>
  return isFinalStatus(status) && Array.isArray(headers) && headers.every(isLine) && typeof body === "string"
}

/** What Node would throw for is no answer: the error would be the app's, or in a promise the process' end. */
function isFinalStatus(status: unknown): boolean {
  return Number.isInteger(status) && (status as number) >= 200 && (status as number) <= 599
}

function isLine(line: unknown): boolean {
  if (!Array.isArray(line) || typeof line[1] !== "string") return false
  let isSendable = false
  try {
    validateHeaderName(line[0])
    validateHeaderValue(line[0], line[1])
    isSendable = true
  } catch {
    // What is wrong with it is told with the whole answer.
  }
  return isSendable
}
