import type { IncomingMessage, ServerResponse } from "node:http"
import Fastify, { type FastifyInstance } from "fastify"
import { Arrival } from "../bounds/arrivals.ts"
import { bearerToken, type Call } from "../calls.ts"
import { Callers } from "../sockets/callers.ts"
import { LINGER_MS } from "../sockets/connections.ts"
import type { DoorBounds, DoorListeners, DoorServer } from "../sockets/door.ts"
import type { Tls } from "../sockets/tls.ts"
import { Code, StatusError } from "../status-error.ts"
import { handlerOf } from "./answer-call.ts"
import { checkAnswerer } from "./answer-check.ts"
import { type ArrivingRequest, addCallParser, type RouteConfig } from "./call-parser.ts"
import type { GatewayChecks } from "./gateway-checks.ts"
import { isCheck } from "./gateway-question.ts"
import { type CountedResponse, HttpAnswers } from "./http-answers.ts"
import { createHttpListener } from "./http-listener.ts"
import { requireOwnName } from "./own-name.ts"

/** The HTTP server. */
export interface HttpDoor extends DoorServer {
  /** Makes every response close its connection, so that clients send their next request on a new connection. */
  leave(): void
}

/**
 * Creates the HTTP server, which implements the same calls as the gRPC server. Each call is a POST to its path. The
 * body is the request as JSON (https://protobuf.dev/programming-guides/json) or as bytes. The calls follow Connect's
 * unary protocol (https://connectrpc.com/docs/protocol), so that Connect clients work too. Below /check, the server
 * responds to checks of gateways, with any method. `isOpen` means that some calls need no token.
 */
export function createHttpDoor(
  calls: readonly Call[],
  bounds: DoorBounds,
  listeners: DoorListeners,
  tls?: Tls | undefined,
  checks?: GatewayChecks | undefined,
  isOpen = false,
): HttpDoor {
  const callers = new Callers(tls !== undefined, bounds, listeners)
  const { connections } = callers
  const answers = new HttpAnswers(connections, listeners, calls)
  const app = Fastify({
    logger: false,
    // Let the parser accept any member name, because the protobuf reader rejects unknown fields and names them.
    onProtoPoisoning: "ignore",
    onConstructorPoisoning: "ignore",
    exposeHeadRoutes: false,
    // Respond "not found" to a path with invalid percent-encoding, because Fastify would use its own error format.
    frameworkErrors: (_error, request, reply) => void answers.notFound(request, reply),
  })
  // Store the arrival on the request, because a WeakMap of requests multiplied the time for garbage collection.
  app.decorateRequest("arrival", null)
  addCallParser(app, callers.arrivals, bounds.maxMessageBytes)
  beginArrivals(app, callers, answers, isOpen)
  for (const call of calls) {
    const handler = handlerOf(call, answers, callers, listeners)
    const config: RouteConfig = { call }
    app.post(call.path, { config: config as object }, handler)
  }
  app.setNotFoundHandler((request, reply) => answers.notFound(request, reply))
  app.setErrorHandler((error: Error, request, reply) => answers.failEarly(error, request, reply))
  const answerCheck = checks && checkAnswerer(checks, answers, callers, listeners)
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const connection = connections.of(request.socket)
    connection?.beginCall(0)
    response.once("close", () => {
      connection?.endCall()
      if (!request.complete && !request.socket.destroyed) endUnlessComplete(request)
      const { unread } = response as CountedResponse
      if (unread !== undefined) connection?.unread?.remove(unread)
    })
    if (answerCheck === undefined || !isCheck(request.url as string)) app.routing(request, response)
    else if (connection !== undefined) void answerCheck(request, response, connection.peer)
  }
  return {
    async listen(host, port) {
      await app.ready()
      // Create the servers here, because Fastify creates a server for each address of "localhost" but exposes only
      // the first.
      return callers.listen(host, port, () =>
        createHttpListener(
          answer,
          (error, socket) => app.server.emit("clientError", error, socket),
          callers,
          bounds,
          tls,
        ),
      )
    },
    leave() {
      answers.isLeaving = true
    },
    async drain() {
      answers.isLeaving = true
      connections.endSilent()
      const { busy } = answers
      // Close late connections here, because a closed server no longer checks for requests that take too long.
      const late = setTimeout(() => connections.endUnless((socket) => busy.has(socket)), bounds.arrivalMs)
      await callers.endListening()
      clearTimeout(late)
    },
    close: () => callers.end(),
  }
}

/** Authorizes each call before its body is read, and counts the bytes of the body as they arrive. */
function beginArrivals(
  app: FastifyInstance,
  { connections, arrivals }: Callers,
  answers: HttpAnswers,
  isOpen: boolean,
): void {
  app.addHook("onRequest", (request, reply, done) => {
    const { raw } = request
    const { "content-encoding": encoding = "identity" } = request.headers
    if (encoding !== "identity") {
      const message = `A compressed body (${encoding}) is not supported; send it uncompressed.`
      answers.fail(reply, new StatusError(Code.UNIMPLEMENTED, message), request.url)
      return
    }
    const connection = connections.of(raw.socket)
    if (connection === undefined) return
    const { call } = request.routeOptions.config as RouteConfig
    try {
      if (isOpen) requireOwnName(raw)
      call?.authorize(bearerToken(request.headers.authorization))
    } catch (error) {
      answers.refuse(reply, error as StatusError)
      return
    }
    const endArrival = (error: StatusError): void => {
      if (error.code === Code.DEADLINE_EXCEEDED) connection.endLate()
      else answers.endUnfinished(reply, error)
    }
    const arrival = new Arrival(connection, arrivals, { endArrival })
    ;(request as ArrivingRequest).arrival = arrival
    // Also end the arrival of a failed request, whose response always emits "close". If the request arrives
    // completely, its handler ends the arrival.
    reply.raw.once("close", () => arrivals.end(arrival))
    arrivals.begin(arrival)
    if (arrival.isRunning) done()
  })
}

/**
 * Closes the connection of an answered request soon, unless the rest arrives. Some clients send a whole request
 * before they read the response.
 */
function endUnlessComplete(request: IncomingMessage): void {
  const end = (): void => {
    if (!request.complete) request.socket.destroy()
  }
  setTimeout(end, LINGER_MS).unref()
}
