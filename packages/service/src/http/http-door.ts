import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { createServer as createTlsServer } from "node:https"
import type { Socket } from "node:net"
import { withExactNumbers } from "@sluice/core"
import Fastify, { type FastifyReply, type FastifyRequest } from "fastify"
import { Arrival, UnreadAnswers } from "../bounds/arrivals.ts"
import { CallPlaces } from "../bounds/in-flight.ts"
import { type Peer, peerAddress } from "../bounds/peers.ts"
import { type Asking, type Body, bearerToken, type Call } from "../calls.ts"
import { Callers } from "../sockets/callers.ts"
import { DEFAULT_IDLE_MS, LINGER_MS } from "../sockets/connections.ts"
import type { DoorBounds, DoorListeners, DoorServer } from "../sockets/door.ts"
import { type Tls, tlsOptions } from "../sockets/tls.ts"
import { Code, StatusError, shortened, TokenError } from "../status-error.ts"
import { JsonList, JsonScan, MOST_VALUES, MOST_VALUES_OF_RULES } from "../wire/json-list.ts"
import {
  announcesBody,
  CHECK_PATH,
  type CheckAnswer,
  failedCheck,
  type GatewayChecks,
} from "./gateway-checks.ts"
import { isCheck } from "./gateway-question.ts"
import { isJson, readBody } from "./http-body.ts"
import { CheckContext, HttpContext, TimedAsking, timeoutOf } from "./http-context.ts"
import { httpError, retryHeaders } from "./http-errors.ts"
import { requireOwnName } from "./own-name.ts"

/** The HTTP server. */
export interface HttpDoor extends DoorServer {
  /**
   * Still answers, but ends the connection after every answer, so that clients send their next request on a new one.
   */
  leave(): void
}

/** The body of an answer. */
type AnswerBody = Uint8Array | string

/** Connect's content type for binary messages. */
const BINARY = "application/proto"
const JSON_TYPE = "application/json; charset=utf-8"

/**
 * Creates the HTTP server, which has the same calls as gRPC. Each is a POST to the path of the call. The body is the
 * request as JSON (https://protobuf.dev/programming-guides/json) or as bytes. The calls follow Connect's unary protocol
 * (https://connectrpc.com/docs/protocol), so that Connect clients work too. Below /check, it answers `checks` of
 * gateways, with any method. `isOpen` means that some calls need no token.
 */
export function createHttpDoor(
  calls: readonly Call[],
  bounds: DoorBounds,
  listeners: DoorListeners,
  tls?: Tls | undefined,
  checks?: GatewayChecks | undefined,
  isOpen = false,
): HttpDoor {
  const { maxMessageBytes, arrivalMs, idleMs = DEFAULT_IDLE_MS } = bounds
  const callers = new Callers(tls !== undefined, bounds, listeners)
  const { connections, arrivals, inFlight } = callers
  const onAnswered = listeners.onAnswered?.bind(listeners, "http")
  const app = Fastify({
    logger: false,
    // Let the parser accept any member name. The protobuf reader then refuses unknown fields by their names.
    onProtoPoisoning: "ignore",
    onConstructorPoisoning: "ignore",
    exposeHeadRoutes: false,
    // A path with invalid percent-encoding is answered as not found. Fastify would send its own error format.
    frameworkErrors: (_error, request, reply) => void notFound(request, reply),
  })
  // Store the arrival on the request: a WeakMap of requests multiplied the time for garbage collection.
  app.decorateRequest("arrival", null)
  app.removeAllContentTypeParsers()
  const parseJson = app.getDefaultJsonParser("ignore", "ignore")
  app.addContentTypeParser(["application/json", BINARY], (request, payload, parsed) => {
    const { call } = request.routeOptions.config as RouteConfig
    const { arrival } = request as ArrivingRequest
    const isBatch = call?.requestsIn !== undefined
    const most = isBatch || call?.list === undefined ? undefined : MOST_VALUES_OF_RULES
    let json: JsonScan | undefined
    const scan = (body: Buffer): void => {
      // Most bodies are short.
      if (!isBatch && body.length <= MOST_VALUES) return
      json ??= new JsonScan(call?.list, most)
      json.read(body)
    }
    const done = (error: Error | undefined, body: Buffer): void => {
      try {
        if (error !== undefined) throw error
        if (most !== undefined) json?.finish()
      } catch (refusal) {
        parsed(refusal as Error)
        return
      }
      if (!isJson(request)) parsed(null, body)
      else if (isBatch) parsed(null, new JsonList(body, json ?? new JsonScan()))
      else parseJson(request, withExactNumbers(body.toString()), parsed)
    }
    const maxBytes = call?.maxBytes ?? maxMessageBytes
    const scanned = isJson(request) ? scan : undefined
    readBody(payload as IncomingMessage, maxBytes, arrivals, arrival as Arrival, scanned, done)
  })
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const connection = connections.of(request.socket)
    connection?.beginCall(0)
    response.once("close", () => {
      connection?.endCall()
      if (!request.complete && !request.socket.destroyed) endUnlessComplete(request)
      const { unread } = response as CountedResponse
      if (unread !== undefined) connection?.unread?.remove(unread)
    })
    if (checks === undefined || !isCheck(request.url as string)) app.routing(request, response)
    else if (connection !== undefined) void answerCheck(checks, request, response, connection.peer)
  }
  // Create the servers here. Fastify also creates a server for each address of "localhost", but gives access only to
  // the first.
  const createListener = (): Server => {
    const options = {
      keepAliveTimeout: idleMs,
      requestTimeout: arrivalMs,
      headersTimeout: arrivalMs,
      // Interval at which Node checks for requests that take too long.
      connectionsCheckingInterval: Math.ceil(arrivalMs / 10),
    }
    const listener =
      tls === undefined
        ? createServer(options, answer)
        : createTlsServer({ ...options, ...tlsOptions(tls) }, answer)
    listener.on("clientError", (error, socket) => app.server.emit("clientError", error, socket))
    connections.watch(listener)
    listener.on(tls === undefined ? "connection" : "secureConnection", (socket: Socket) => {
      const connection = connections.of(socket)
      if (connection === undefined) return
      connection.unread = new UnreadAnswers(connection, connection.socket, arrivals, () => socket.destroy())
      connection.endLate = () => void listener.emit("clientError", requestTimeout(), socket)
      // Node ends idle connections itself, unless an empty line has stopped its timer.
      connection.endIdle = () => connection.expectCall()
    })
    return listener
  }
  const outputs = new Map(calls.map(({ path, output }) => [path, output]))
  /** Sockets with calls in flight. */
  const busy = new Set<Socket>()
  let isLeaving = false
  /** Counts an answer until it has been sent. Ends the connection of a client that has not read many others. */
  const count = (response: CountedResponse, length: number): void => {
    const { socket } = response
    const unread = socket === null ? undefined : connections.of(socket)?.unread
    if (unread?.refuses() === true) socket?.destroy()
    response.unread = unread?.add(length)
  }
  /** Sends a body. While the service is leaving, it also ends the connection after this answer. */
  const send = (reply: FastifyReply, body: AnswerBody): FastifyReply => {
    count(reply.raw, body.length)
    return isLeaving ? reply.header("connection", "close").send(body) : reply.send(body)
  }
  const sendError = (reply: FastifyReply, body: object): FastifyReply =>
    send(reply.type(JSON_TYPE), JSON.stringify(body))
  const statusErrorOf = (error: unknown, path: string): StatusError => {
    if (error instanceof StatusError) return error
    listeners.onFault(error, path)
    return new StatusError(Code.INTERNAL, "The decision service failed; see its log.")
  }
  const fail = (reply: FastifyReply, error: unknown, path: string): FastifyReply => {
    const failure = statusErrorOf(error, path)
    // A message may repeat a part of the request, which may be long.
    const { status, body } = httpError(shortened(failure), outputs.get(path))
    return sendError(reply.code(status).headers(retryHeaders(failure)), body)
  }
  /**
   * Answers a check of a gateway. Nobody reads the body that a gateway may pass on, and a gateway may announce one that
   * it does not send. So the answer does not wait for the body, and ends the connection.
   */
  const answerCheck = async (
    checks: GatewayChecks,
    request: IncomingMessage,
    response: ServerResponse,
    peer: Peer,
  ): Promise<void> => {
    const { socket, rawHeaders, url = "" } = request
    const sinceMs = onAnswered === undefined ? 0 : performance.now()
    const places = new CallPlaces(inFlight, peer)
    let code: Code = Code.OK
    let answer: CheckAnswer
    busy.add(socket)
    try {
      places.take(undefined, url.length + rawHeaders.reduce((sum, { length }) => sum + length, 0))
      const deciding = checks.decide(request, new CheckContext(request, response, places))
      if (deciding instanceof Promise) places.wait()
      answer = await deciding
    } catch (error) {
      const failure = statusErrorOf(error, CHECK_PATH)
      code = failure.code
      if (failure instanceof TokenError) listeners.onWrongToken?.(CHECK_PATH, peer.address)
      else if (code === Code.INVALID_ARGUMENT || code === Code.PERMISSION_DENIED)
        listeners.onInvalidCheck?.(failure.message, peer.address)
      answer = failedCheck(failure, url)
    }
    places.leave()
    busy.delete(socket)
    onAnswered?.(CHECK_PATH, code, performance.now() - sinceMs)
    const { status, headers, body } = answer
    if (isLeaving || announcesBody(request)) response.setHeader("connection", "close")
    // Node sets no length for a body that it omits, as for HEAD.
    if (status !== 204) response.setHeader("content-length", Buffer.byteLength(body))
    count(response, body.length)
    response.writeHead(status, headers).end(body)
    request.resume()
  }
  /** Answers a request that has not arrived completely, and ends its connection, because the rest is not read. */
  const endUnfinished = (reply: FastifyReply, error: StatusError, path: string): void => {
    reply.raw.once("close", () => reply.request.raw.destroy())
    fail(reply.header("connection", "close"), error, path)
  }
  /** Answers a call that is refused before its handler runs, and reports it. */
  const refuse = (reply: FastifyReply, error: StatusError): void => {
    const path = reply.request.routeOptions.url ?? reply.request.url
    if (error instanceof TokenError) listeners.onWrongToken?.(path, peerAddress(reply.request.socket))
    onAnswered?.(path, error.code, reply.elapsedTime)
    fail(reply, error, path)
  }
  app.addHook("onRequest", (request, reply, done) => {
    const { raw } = request
    const { "content-encoding": encoding = "identity" } = request.headers
    if (encoding !== "identity") {
      const message = `A compressed body (${encoding}) is not supported; send it uncompressed.`
      fail(reply, new StatusError(Code.UNIMPLEMENTED, message), request.url)
      return
    }
    const connection = connections.of(raw.socket)
    if (connection === undefined) return
    const { call } = request.routeOptions.config as RouteConfig
    try {
      if (isOpen) requireOwnName(raw)
      call?.authorize(bearerToken(request.headers.authorization))
    } catch (error) {
      refuse(reply, error as StatusError)
      return
    }
    const endArrival = (error: StatusError): void => {
      if (error.code === Code.DEADLINE_EXCEEDED) connection.endLate()
      else endUnfinished(reply, error, request.url)
    }
    const arrival = new Arrival(connection, arrivals, { endArrival })
    ;(request as ArrivingRequest).arrival = arrival
    // The response always closes, even if the request fails. If the request arrives completely, its handler ends the
    // arrival.
    reply.raw.once("close", () => arrivals.end(arrival))
    arrivals.begin(arrival)
    if (arrival.isRunning) done()
  })
  for (const call of calls) {
    const { path } = call
    app.post(path, { config: { call } satisfies RouteConfig }, async (request, reply) => {
      const { socket } = request
      const sinceMs = onAnswered === undefined ? 0 : performance.now()
      const arrival = (request as ArrivingRequest).arrival as Arrival
      arrivals.end(arrival)
      const places = new CallPlaces(inFlight, arrival.sender.peer)
      const isBinary = request.body instanceof Uint8Array
      let code: Code = Code.OK
      let answer: AnswerBody | Promise<AnswerBody> | undefined
      busy.add(socket)
      try {
        places.take(call.requestsIn?.((request.body ?? {}) as Body), arrival.bytes)
        const sent = await inTime(request, reply, (asking) => {
          const context = new HttpContext(request, asking, places)
          const body = (request.body ?? {}) as Body
          // Free the body: a request may wait for hours, and its body is not needed again.
          request.body = undefined
          // Answer in the format of the request. The content type parser has already handled upper case and parameters
          // of the type.
          answer =
            body instanceof Uint8Array ? call.answerBytes(body, context) : call.answerJson(body, context)
          if (answer instanceof Promise) places.wait()
          return answer
        })
        return send(reply.type(isBinary ? BINARY : JSON_TYPE), sent)
      } catch (error) {
        // Free the body: the response may wait for hours, until the client has read the earlier responses of its
        // connection.
        request.body = undefined
        code = error instanceof StatusError ? error.code : Code.INTERNAL
        if (error instanceof TokenError) listeners.onWrongToken?.(path, peerAddress(socket))
        return fail(reply, error, path)
      } finally {
        onAnswered?.(path, code, performance.now() - sinceMs)
        busy.delete(socket)
        const leave = (): void => places.leave()
        // Keep the places until the handler is done. After a timeout the caller has its answer, but the store may still
        // be working.
        if (answer instanceof Promise) void answer.then(leave, leave)
        else leave()
      }
    })
  }
  const notFound = ({ method, url }: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const isOtherMethod = outputs.has(url.split("?", 1)[0] as string)
    const hint = isOtherMethod ? " Use POST instead." : ""
    return fail(reply, new StatusError(Code.UNIMPLEMENTED, `There is no ${method} ${url}.${hint}`), url)
  }
  app.setNotFoundHandler(notFound)
  // Handles the requests that Fastify refuses before a handler runs: the body is too long, not valid JSON, or of an
  // unknown type.
  app.setErrorHandler((error: { readonly statusCode?: number; readonly message: string }, request, reply) => {
    const { statusCode = 500, message } = error
    if (error instanceof StatusError) return refuse(reply, error)
    if (statusCode >= 500) return fail(reply, error, request.url)
    const code = statusCode === 413 ? Code.RESOURCE_EXHAUSTED : Code.INVALID_ARGUMENT
    const failure = new StatusError(code, REFUSED[statusCode]?.(request) ?? message)
    const { body } = httpError(shortened(failure), outputs.get(request.routeOptions.url ?? ""))
    return sendError(reply.code(statusCode), body)
  })
  return {
    async listen(host, port) {
      await app.ready()
      return callers.listen(host, port, createListener)
    },
    leave() {
      isLeaving = true
    },
    async drain() {
      isLeaving = true
      connections.endSilent()
      // A closed server no longer checks for requests that take too long.
      const late = setTimeout(() => connections.endUnless((socket) => busy.has(socket)), arrivalMs)
      await callers.endListening()
      clearTimeout(late)
    },
    close: () => callers.end(),
  }
}

/** Ends the connection of an answered request soon, unless the rest arrives. Some clients send it all before they read. */
function endUnlessComplete(request: IncomingMessage): void {
  const end = (): void => {
    if (!request.complete) request.socket.destroy()
  }
  setTimeout(end, LINGER_MS).unref()
}

/** The configuration of a route. Empty for paths that do not exist. */
interface RouteConfig {
  readonly call?: Call
}

/** A response whose bytes are counted until it has been sent. */
interface CountedResponse extends ServerResponse {
  unread?: number | undefined
}

/** A request whose body may not have arrived yet. */
interface ArrivingRequest extends FastifyRequest {
  arrival: Arrival | null
}

/** Creates the error that Node emits for a request that takes too long. It is answered with 408. */
function requestTimeout(): Error {
  return Object.assign(new Error("Request timeout"), { code: "ERR_HTTP_REQUEST_TIMEOUT" })
}

/** Messages for statuses for which Fastify's own message does not explain what to send. */
const REFUSED: Readonly<Record<number, (request: FastifyRequest) => string>> = {
  415: ({ headers }) =>
    `A body of type ${headers["content-type"] || "unknown"} is not supported; send application/json or ${BINARY}.`,
}

/** Returns the answer. Rejects if it takes longer than the caller's timeout. */
async function inTime(
  request: FastifyRequest,
  reply: FastifyReply,
  answer: (asking: Asking) => AnswerBody | Promise<AnswerBody>,
): Promise<AnswerBody> {
  const timeoutMs = timeoutOf(request)
  // One call may wait for many requests, each with its own listener.
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
