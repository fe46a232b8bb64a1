import type { IncomingMessage, ServerResponse } from "node:http"
import { CallPlaces } from "../bounds/in-flight.ts"
import type { Peer } from "../bounds/peers.ts"
import type { Callers } from "../sockets/callers.ts"
import type { DoorListeners } from "../sockets/door.ts"
import { Code, TokenError } from "../status-error.ts"
import {
  announcesBody,
  CHECK_PATH,
  type CheckAnswer,
  failedCheck,
  type GatewayChecks,
} from "./gateway-checks.ts"
import type { HttpAnswers } from "./http-answers.ts"
import { CheckContext } from "./http-context.ts"

/**
 * Returns the function that responds to checks of gateways. A gateway may announce a body that it does not send, and
 * no code reads the body. So the response does not wait for the body, and closes the connection.
 */
export function checkAnswerer(
  checks: GatewayChecks,
  answers: HttpAnswers,
  { inFlight }: Callers,
  listeners: DoorListeners,
): (request: IncomingMessage, response: ServerResponse, peer: Peer) => Promise<void> {
  return async (request, response, peer) => {
    const { socket, rawHeaders, url = "" } = request
    const sinceMs = listeners.onAnswered === undefined ? 0 : performance.now()
    const places = new CallPlaces(inFlight, peer)
    let code: Code = Code.OK
    let answer: CheckAnswer
    answers.busy.add(socket)
    try {
      places.take(undefined, url.length + rawHeaders.reduce((sum, { length }) => sum + length, 0))
      const deciding = checks.decide(request, new CheckContext(request, response, places))
      if (deciding instanceof Promise) places.wait()
      answer = await deciding
    } catch (error) {
      const failure = answers.statusErrorOf(error, CHECK_PATH)
      code = failure.code
      if (failure instanceof TokenError) listeners.onWrongToken?.(CHECK_PATH, peer.address)
      else if (code === Code.INVALID_ARGUMENT || code === Code.PERMISSION_DENIED)
        listeners.onInvalidCheck?.(failure.message, peer.address)
      answer = failedCheck(failure, url)
    }
    places.leave()
    answers.busy.delete(socket)
    listeners.onAnswered?.("http", CHECK_PATH, code, performance.now() - sinceMs)
    const { status, headers, body } = answer
    if (answers.isLeaving || announcesBody(request)) response.setHeader("connection", "close")
    // Set the length, because Node sets none when it omits the body, as in a response to HEAD.
    if (status !== 204) response.setHeader("content-length", Buffer.byteLength(body))
    answers.count(response, body.length)
    response.writeHead(status, headers).end(body)
    request.resume()
  }
}
