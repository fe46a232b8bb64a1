import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { createServer as createTlsServer } from "node:https"
import type { Socket } from "node:net"
import Fastify, { type FastifyReply, type FastifyRequest } from "fastify"
import { Arrival, Arrivals, DEFAULT_MAX_UNFINISHED_BYTES } from "../arrivals.ts"
import type { Asking, Body, Call } from "../calls.ts"
import { type ConnectionBounds, Connections, DEFAULT_IDLE_MS } from "../connections.ts"
import type { DoorListeners } from "../door.ts"
import { CallPlaces, InFlight } from "../in-flight.ts"
import { listenOnEach, portOf } from "../listening.ts"
import { peerAddress } from "../peers.ts"
import { Code, OverloadError, StatusError, TokenError } from "../status-error.ts"
import { type Tls, tlsOptions } from "../tls.ts"
import { isJson, readBody } from "./http-body.ts"
import { HttpContext, TimedAsking, timeoutOf } from "./http-context.ts"
import { httpError } from "./http-errors.ts"

/** Bounds of what callers may send. */
export interface HttpBounds extends ConnectionBounds {
  /** Bytes of a body, if its call does not say otherwise. */
  readonly maxMessageBytes: number
  /** Bytes in memory of requests that have not arrived yet, and as many of requests that have not been answered. Default 64 MiB. */
  readonly maxUnfinishedBytes?: number | undefined
  /**
   * Single calls in flight, as many requests in batches, as many requests that rules hold, and as many calls whose request has not
   * arrived yet. More are refused with 503; a batch that comes alone is accepted.
   */
  readonly maxInFlight: number
  /** Milliseconds that a request may take to arrive. */
  readonly arrivalMs: number
}

/** The door of HTTP with JSON. */
export interface HttpDoor {
  /** Resolves with the port that it listens on. */
  listen(host: string, port: number): Promise<number>
  /** Still answers, and asks for each next request to come by another connection: every answer ends its own. */
  leave(): void
  /** Takes no new connections, and resolves when what came by those that are open has been answered. */
  drain(): Promise<void>
  /** Ends all connections. */
  close(): void
}

/** The body of an answer. */
type AnswerBody = Uint8Array | string

/** Messages in their binary form, as Connect calls it. */
const BINARY = "application/proto"
const JSON_TYPE = "application/json; charset=utf-8"

/**
 * The same calls as over gRPC, each a POST to its path whose body is the request as JSON, or as bytes (https://protobuf.dev/programming-guides/json):
 * what Connect calls unary (https://connectrpc.com/docs/protocol), so that its clients can call them too.
 */
export function createHttpDoor(
  calls: readonly Call[],
  bounds: HttpBounds,
  listeners: DoorListeners,
  tls?: Tls | undefined,
): HttpDoor {
  const { maxMessageBytes, maxInFlight, arrivalMs, idleMs = DEFAULT_IDLE_MS } = bounds
  const { onFault, onAnswered } = listeners
  const app = Fastify({
    logger: false,
    // Whatever a member is called, it is read as what the message has of that name, and else refused by its name.
    onProtoPoisoning: "ignore",
    onConstructorPoisoning: "ignore",
    exposeHeadRoutes: false,
    // A path whose escapes are none: Fastify would answer it in words of its own.
    frameworkErrors: (_error, request, reply) => void notFound(request, reply),
  })
  // A member of the request: a WeakMap of requests multiplied the time that garbage collection takes.
  app.decorateRequest("arrival", null)
  app.removeAllContentTypeParsers()
  const parseJson = app.getDefaultJsonParser("ignore", "ignore")
  app.addContentTypeParser(["application/json", BINARY], (request, payload, done) => {
    const { maxBytes = maxMessageBytes } = request.routeOptions.config as { readonly maxBytes?: number }
    const { arrival } = request as ArrivingRequest
    readBody(payload as IncomingMessage, maxBytes, arrivals, arrival as Arrival, (error, body) => {
      if (error !== undefined) done(error)
      else if (isJson(request)) parseJson(request, body.toString(), done)
      else done(null, body)
    })
  })
  const connections = new Connections(tls !== undefined, bounds, listeners)
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const connection = connections.of(request.socket)
    connection?.beginCall()
    response.once("close", () => connection?.endCall())
    app.routing(request, response)
  }
  // Fastify's own would be one for each address of "localhost" too, and it lets nobody see but the first.
  const createListener = (): Server => {
    const options = {
      keepAliveTimeout: idleMs,
      requestTimeout: arrivalMs,
      headersTimeout: arrivalMs,
      // Node looks for requests that take too long every so often.
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
      connection.endLate = () => void listener.emit("clientError", requestTimeout(), socket)
      // Node ends idle connections itself, unless an empty line has switched off its timer.
      connection.endIdle = () => connection.expectCall()
    })
    return listener
  }
  let listening: readonly Server[] = []
  const outputs = new Map(calls.map(({ path, output }) => [path, output]))
  const mostBytes = bounds.maxUnfinishedBytes ?? DEFAULT_MAX_UNFINISHED_BYTES
  const arrivals = new Arrivals({ mostArriving: maxInFlight, mostBytes, arrivalMs }, listeners.onOverload)
  /** By which the calls in flight have come. */
  const busy = new Set<Socket>()
  const inFlight = new InFlight(maxInFlight, mostBytes, connections.peers, listeners.onOverload)
  let isLeaving = false
  /** The last answer of its connection, where that is to end. */
  const send = (reply: FastifyReply, body: unknown): FastifyReply =>
    isLeaving ? reply.header("connection", "close").send(body) : reply.send(body)
  const fail = (reply: FastifyReply, error: unknown, path: string): FastifyReply => {
    if (!(error instanceof StatusError)) {
      onFault(error, path)
      return fail(
        reply,
        new StatusError(Code.INTERNAL, "An error of the decision service; its log has it."),
        path,
      )
    }
    const { status, body } = httpError(error, outputs.get(path))
    if (error instanceof OverloadError) reply.header("retry-after", Math.ceil(error.retryAfterMs / 1_000))
    return send(reply.code(status), body)
  }
  /** Answers a request of which more is to come, and ends its connection, since nobody reads the rest. */
  const endUnfinished = (reply: FastifyReply, error: StatusError, path: string): void => {
    reply.raw.once("close", () => reply.request.raw.destroy())
    fail(reply.header("connection", "close"), error, path)
  }
  app.addHook("onRequest", (request, reply, done) => {
    const { raw } = request
    const { "content-encoding": encoding = "identity" } = request.headers
    if (encoding !== "identity") {
      const message = `A body that is compressed (${encoding}) is not read: send it as it is.`
      fail(reply, new StatusError(Code.UNIMPLEMENTED, message), request.url)
      return
    }
    const connection = connections.of(raw.socket)
    if (connection === undefined) return
    const endArrival = (error: StatusError): void => {
      if (error instanceof OverloadError) endUnfinished(reply, error, request.url)
      else connection.endLate()
    }
    const arrival = new Arrival(connection, arrivals, { endArrival })
    ;(request as ArrivingRequest).arrival = arrival
    // Whatever becomes of the request, its response closes. A request that has come ends its arrival in the handler.
    reply.raw.once("close", () => arrivals.end(arrival))
    arrivals.begin(arrival)
    if (arrival.isRunning) done()
  })
  for (const call of calls) {
    const { path } = call
    app.post(path, { config: { maxBytes: call.maxBytes ?? maxMessageBytes } }, async (request, reply) => {
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
          // A request may wait for hours, and its body is not needed again.
          request.body = undefined
          // As it was asked: the body was read by its type, in whatever case that is written, and with parameters.
          answer =
            body instanceof Uint8Array ? call.answerBytes(body, context) : call.answerJson(body, context)
          if (answer instanceof Promise) places.wait()
          return answer
        })
        return send(reply.type(isBinary ? BINARY : JSON_TYPE), sent)
      } catch (error) {
        code = error instanceof StatusError ? error.code : Code.INTERNAL
        if (error instanceof TokenError) listeners.onWrongToken(path, peerAddress(socket))
        return fail(reply, error, path)
      } finally {
        onAnswered?.(path, code, performance.now() - sinceMs)
        busy.delete(socket)
        const leave = (): void => places.leave()
        // A caller that has waited long enough has its answer, and yet the store may still be working for it.
        if (answer instanceof Promise) void answer.then(leave, leave)
        else leave()
      }
    })
  }
  const notFound = ({ method, url }: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const isOtherMethod = outputs.has(url.split("?", 1)[0] as string)
    const hint = isOtherMethod ? " It is asked by POST." : ""
    return fail(reply, new StatusError(Code.UNIMPLEMENTED, `There is no ${method} ${url}.${hint}`), url)
  }
  app.setNotFoundHandler(notFound)
  // What Fastify refuses before a handler: a body that is too long, no JSON, or of another type.
  app.setErrorHandler((error: { readonly statusCode?: number; readonly message: string }, request, reply) => {
    const { statusCode = 500, message } = error
    if (statusCode >= 500) return fail(reply, error, request.url)
    const code = statusCode === 413 ? Code.RESOURCE_EXHAUSTED : Code.INVALID_ARGUMENT
    const failure = new StatusError(code, REFUSED[statusCode]?.(request) ?? message)
    const { body } = httpError(failure, outputs.get(request.routeOptions.url ?? ""))
    return send(reply.code(statusCode), body)
  })
  return {
    async listen(host, port) {
      await app.ready()
      listening = await listenOnEach(host, port, createListener)
      return portOf(listening[0] as Server)
    },
    leave() {
      isLeaving = true
    },
    async drain() {
      isLeaving = true
      connections.endSilent()
      // A server that is closed looks no more for requests that take too long.
      const late = setTimeout(() => connections.endUnless((socket) => busy.has(socket)), arrivalMs)
      await Promise.all(listening.map((each) => new Promise((resolve) => each.close(resolve))))
      clearTimeout(late)
    },
    close() {
      connections.end()
      arrivals.close()
    },
  }
}

/** A request whose body may not have come yet. */
interface ArrivingRequest extends FastifyRequest {
  arrival: Arrival | null
}

/** What Node emits for a request that takes too long; it is answered with 408. */
function requestTimeout(): Error {
  return Object.assign(new Error("Request timeout"), { code: "ERR_HTTP_REQUEST_TIMEOUT" })
}

/** What Fastify says of these does not tell what to send. */
const REFUSED: Readonly<Record<number, (request: FastifyRequest) => string>> = {
  415: ({ headers }) =>
    `A body of type ${headers["content-type"] || "unknown"} is not read: send application/json or ${BINARY}.`,
}

/** The answer, within the time that the caller has for it. */
async function inTime(
  request: FastifyRequest,
  reply: FastifyReply,
  answer: (asking: Asking) => AnswerBody | Promise<AnswerBody>,
): Promise<AnswerBody> {
  const timeoutMs = timeoutOf(request)
  // One caller may wait for as many requests as it has put into a call.
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
