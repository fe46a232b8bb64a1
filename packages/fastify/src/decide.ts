import {
  type Decision,
  exposedHeaders,
  type Guard,
  type HeaderLine,
  type Outcome,
  type Rejection,
} from "@sluice/core"
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from "fastify"
import { FastifyFacts } from "./facts.ts"

// A decorator with a value would be written into every request, a getter is not.
const DECISION = Symbol("sluice.decision")
type Decided = FastifyRequest & { [DECISION]?: Decision }

/** Fastify makes names lower case, anew for each response: a quarter of what setting a header costs. */
const LOWER_CASE: ReadonlyMap<string, string> = new Map(
  (["draft-11", "next", "triple", "legacy"] as const)
    .flatMap((dialect) => exposedHeaders(dialect))
    .map((name) => [name, name.toLowerCase()]),
)

/** What `request.rateLimit` yields. */
export function decisionOf(this: FastifyRequest): Decision | undefined {
  return (this as Decided)[DECISION]
}

/** Asks the guard, and goes on with the request by `done` or answers it. */
export function decide(
  guard: Guard<FastifyRequest>,
  request: FastifyRequest,
  reply: FastifyReply,
  done: HookHandlerDoneFunction,
): void {
  const outcome = guard.check(new FastifyFacts(request), request)
  // A value stays a value: on the memory store no request waits for a promise.
  if (outcome instanceof Promise) void outcome.then((late) => proceed(guard, late, request, reply, done))
  else proceed(guard, outcome, request, reply, done)
}

function proceed(
  guard: Guard<FastifyRequest>,
  outcome: Outcome,
  request: FastifyRequest,
  reply: FastifyReply,
  done: HookHandlerDoneFunction,
): void {
  ;(request as Decided)[DECISION] = outcome.decision
  setHeaders(reply, outcome.headers)
  if (outcome.rejection === undefined) {
    done()
    return
  }
  // By a handler timeout, while the store was asked.
  if (reply.sent) return
  const answered = watchSend(reply)
  const rejection = guard.answer(outcome, request, reply)
  if (rejection instanceof Promise) void rejection.then((late) => answered() || send(late, reply))
  else if (!answered()) send(rejection, reply)
}

/** Whether the app's `onRejected` has answered by itself: `reply.sent` is still false while onSend hooks run. */
function watchSend(reply: FastifyReply): () => boolean {
  const { send } = reply
  let called = false
  reply.send = (payload) => {
    called = true
    return send.call(reply, payload)
  }
  return () => {
    reply.send = send
    return called || reply.sent
  }
}

function send({ status, headers, body }: Rejection, reply: FastifyReply): void {
  reply.code(status)
  setHeaders(reply, headers)
  // The body is text already; without a serializer Fastify would add a charset that problem+json does not have.
  reply.serializer(asItIs).send(body)
}

function setHeaders(reply: FastifyReply, headers: readonly HeaderLine[]): void {
  for (const [name, value] of headers) reply.header(LOWER_CASE.get(name) ?? name, value)
}

function asItIs(body: string): string {
  return body
}
