import type { FastifyReply, FastifyRequest } from "fastify"
import type { Arrival } from "../bounds/arrivals.ts"
import { CallPlaces } from "../bounds/in-flight.ts"
import { peerAddress } from "../bounds/peers.ts"
import type { Asking, Body, Call } from "../calls.ts"
import type { Callers } from "../sockets/callers.ts"
import type { DoorListeners } from "../sockets/door.ts"
import { Code, StatusError, TokenError } from "../status-error.ts"
import type { ArrivingRequest } from "./call-parser.ts"
import { type AnswerBody, BINARY, type HttpAnswers, JSON_TYPE } from "./http-answers.ts"
import { HttpContext, TimedAsking, timeoutOf } from "./http-context.ts"

/** Returns the handler for requests of a call. The response has the format of the request. */
export function handlerOf(
  call: Call,
  answers: HttpAnswers,
  { arrivals, inFlight }: Callers,
  listeners: DoorListeners,
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> {
  const { path } = call
  const onAnswered = listeners.onAnswered?.bind(listeners, "http")
  return async (request, reply) => {
    const { socket } = request
    const sinceMs = onAnswered === undefined ? 0 : performance.now()
    const arrival = (request as ArrivingRequest).arrival as Arrival
    arrivals.end(arrival)
    const places = new CallPlaces(inFlight, arrival.sender.peer)
    const isBinary = request.body instanceof Uint8Array
    let code: Code = Code.OK
    let answer: AnswerBody | Promise<AnswerBody> | undefined
    answers.busy.add(socket)
    try {
      places.take(call.requestsIn?.((request.body ?? {}) as Body), arrival.bytes)
      const sent = await inTime(request, reply, (asking) => {
        const context = new HttpContext(request, asking, places)
        const body = (request.body ?? {}) as Body
        // Free the body, because a request may wait for hours, and its body is not needed again.
        request.body = undefined
        // Check the type of the body instead of the header, whose case and parameters the content type parser has
        // already handled.
        answer = body instanceof Uint8Array ? call.answerBytes(body, context) : call.answerJson(body, context)
        if (answer instanceof Promise) places.wait()
        return answer
      })
      return answers.send(reply.type(isBinary ? BINARY : JSON_TYPE), sent)
    } catch (error) {
      // Free the body, because the response may wait for hours until the client has read the earlier responses of its
      // connection.
      request.body = undefined
      code = error instanceof StatusError ? error.code : Code.INTERNAL
      if (error instanceof TokenError) listeners.onWrongToken?.(path, peerAddress(socket))
      return answers.fail(reply, error, path)
    } finally {
      onAnswered?.(path, code, performance.now() - sinceMs)
      answers.busy.delete(socket)
      const leave = (): void => places.leave()
      // Keep the places until the handler is done. After a timeout, the caller has received an error, but the store
      // may still be working.
      if (answer instanceof Promise) void answer.then(leave, leave)
      else leave()
    }
  }
}

/** Returns the response. Rejects if the response takes longer than the caller's timeout. */
async function inTime(
  request: FastifyRequest,
  reply: FastifyReply,
  answer: (asking: Asking) => AnswerBody | Promise<AnswerBody>,
): Promise<AnswerBody> {
  const timeoutMs = timeoutOf(request)
  // Remove the limit for listeners, because one call may wait for many requests, and each adds a listener.
  if (timeoutMs === undefined) return answer(reply.raw.setMaxListeners(0))
  let asking: TimedAsking | undefined
  const late = new Promise<never>((_, reject) => {
    asking = new TimedAsking(reply, timeoutMs, reject)
  })
  try {
    return await Promise.race([answer(asking as unknown as Asking), late])
  } finally {
    ;(asking as unknown as TimedAsking).end()
  }
}
