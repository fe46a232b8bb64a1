import {
  type DecisionStep,
  exposedHeaders,
  type Guard,
  HEADER_DIALECTS,
  type HeaderLine,
  type Outcome,
  type RejectionAnswer,
} from "@sluice/core"
import type { FastifyReply, FastifyRequest } from "fastify"
import { FastifyFacts } from "./facts.ts"

/** What a hook calls for the request to go on, or to fail. */
export type Done = (error?: Error) => void

/** A hook of Fastify. Only `preParsing` passes a payload before `done`. */
export type Hook = (request: FastifyRequest, reply: FastifyReply, payload: unknown, done?: Done) => void

/** Of a reply that the app's `onRejected` may send: its own `send`, until it has been called. */
const SEND = Symbol("sluice.send")
type Refusing = FastifyReply & { [SEND]?: FastifyReply["send"] | undefined }

/**
 * Has the guard decide on a request, at one step or by all rules, sets the headers, and either lets it go on or answers it. Where the store
 * answers with a value nothing here waits, and no closure is made.
 */
export function decide(
  guard: Guard<FastifyRequest>,
  request: FastifyRequest,
  reply: FastifyReply,
  done: Done,
  step?: DecisionStep,
): void {
  const outcome = guard.check(new FastifyFacts(request), request, reply.raw, step)
  if (outcome instanceof Promise) respondLater(outcome, guard, request, reply, done)
  else respond(outcome, guard, request, reply, done)
}

function respondLater(
  outcome: Promise<Outcome | undefined>,
  guard: Guard<FastifyRequest>,
  request: FastifyRequest,
  reply: FastifyReply,
  done: Done,
): void {
  // Fastify does the same with what a hook throws at once.
  outcome.then((made) => respond(made, guard, request, reply, done)).catch(done)
}

function respond(
  outcome: Outcome | undefined,
  guard: Guard<FastifyRequest>,
  request: FastifyRequest,
  reply: FastifyReply,
  done: Done,
): void {
  // The client has gone while it was held: no hook or handler has anything to do for it.
  if (outcome === undefined) return
  const { removed, rejection } = outcome
  // Stryker disable next-line ConditionalExpression,EqualityOperator: a list of none is gone through in vain
  if (removed.length > 0) for (const name of removed) reply.removeHeader(name)
  setHeaders(reply, outcome.headers)
  if (rejection === undefined) {
    done()
    return
  }
  // By a handler timeout, while the store was asked.
  if (reply.sent || guard.endBegun(reply.raw)) return
  // Stryker disable next-line ConditionalExpression: the guard's own answer is the same, by a detour
  if (guard.asksApp) refuse(guard, outcome, request, reply, done)
  else send(rejection, reply)
}

function refuse(
  guard: Guard<FastifyRequest>,
  outcome: Outcome,
  request: FastifyRequest,
  reply: Refusing,
  done: Done,
): void {
  reply[SEND] = reply.send
  reply.send = sendAndTell
  const rejection = guard.answer(outcome, request, reply)
  if (rejection instanceof Promise) rejection.then((late) => sendUnlessSent(late, reply)).catch(done)
  else sendUnlessSent(rejection, reply)
}

/** Tells of an answer whose onSend hooks are running: `reply.sent` is false until then. A closure would be dear. */
function sendAndTell(this: Refusing, payload?: unknown): FastifyReply {
  const send = this[SEND] as FastifyReply["send"]
  this[SEND] = undefined
  this.send = send
  return send.call(this, payload)
}

function sendUnlessSent(rejection: RejectionAnswer | undefined, reply: Refusing): void {
  // The app's `onRejected` may have answered by itself, or be about to.
  if (rejection !== undefined && reply[SEND] !== undefined && !isSent(reply)) send(rejection, reply)
}

/** Fastify knows of what is written past it only when it has ended. */
function isSent({ sent, raw }: FastifyReply): boolean {
  return sent || raw.headersSent
}

function send({ status, headers, body }: RejectionAnswer, reply: FastifyReply): void {
  setHeaders(reply.code(status), headers)
  // The body is text already; without a serializer Fastify would add a charset that problem+json does not have.
  reply.serializer(String).send(body)
}

const NAMES = [...HEADER_DIALECTS.flatMap(exposedHeaders), "Cache-Control", "Content-Type"]
/** Fastify makes names lower case, anew for each response: a quarter of what setting a header costs. */
const LOWER_CASE = new Map(NAMES.map((name) => [name, name.toLowerCase()]))

function setHeaders(reply: FastifyReply, headers: readonly HeaderLine[]): void {
  // By index: the protocol of iteration would be more code than all the rest of this.
  for (let i = 0; i < headers.length; i++) {
    const line = headers[i] as HeaderLine
    reply.header(LOWER_CASE.get(line[0]) ?? line[0], line[1])
  }
}
