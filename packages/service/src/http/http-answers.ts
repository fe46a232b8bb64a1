import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { FastifyReply, FastifyRequest } from "fastify"
import { peerAddress } from "../bounds/peers.ts"
import type { Call } from "../calls.ts"
import type { Connections } from "../sockets/connections.ts"
import type { DoorListeners } from "../sockets/door.ts"
import { Code, StatusError, shortened, TokenError } from "../status-error.ts"
import { httpError, retryHeaders } from "./http-errors.ts"

/** The body of a response. */
export type AnswerBody = Uint8Array | string

/** Connect's content type for binary messages. */
export const BINARY = "application/proto"

/** The content type of all other responses. */
export const JSON_TYPE = "application/json; charset=utf-8"

/** A response whose bytes are counted until it has been sent. */
export interface CountedResponse extends ServerResponse {
  unread?: number | undefined
}

/** Sends the responses of one HTTP server, and counts their bytes until the client has read them. */
export class HttpAnswers {
  /** Sockets with calls in flight. */
  readonly busy = new Set<Socket>()
  /** True while the service shuts down. Each response then closes its connection. */
  isLeaving = false
  readonly #connections: Connections
  readonly #listeners: DoorListeners
  readonly #outputs: ReadonlyMap<string, Call["output"]>

  constructor(connections: Connections, listeners: DoorListeners, calls: readonly Call[]) {
    this.#connections = connections
    this.#listeners = listeners
    this.#outputs = new Map(calls.map(({ path, output }) => [path, output]))
  }

  /**
   * Counts a response until it has been sent. Closes the connection of a client that has left too many responses
   * unread.
   */
  count(response: CountedResponse, length: number): void {
    const { socket } = response
    const unread = socket === null ? undefined : this.#connections.of(socket)?.unread
    if (unread?.refuses() === true) socket?.destroy()
    response.unread = unread?.add(length)
  }

  /** Sends a body. */
  send(reply: FastifyReply, body: AnswerBody): FastifyReply {
    this.count(reply.raw, body.length)
    return this.isLeaving ? reply.header("connection", "close").send(body) : reply.send(body)
  }

  /** Returns the error to respond with. Reports a fault of the service itself, whose details clients must not see. */
  statusErrorOf(error: unknown, path: string): StatusError {
    if (error instanceof StatusError) return error
    this.#listeners.onFault(error, path)
    return new StatusError(Code.INTERNAL, "The decision service failed; see its log.")
  }

  /** Responds with an error. */
  fail(reply: FastifyReply, error: unknown, path: string): FastifyReply {
    const failure = this.statusErrorOf(error, path)
    // Shorten the message, because it may repeat a long part of the request.
    const { status, body } = httpError(shortened(failure), this.#outputs.get(path))
    return this.#sendError(reply.code(status).headers(retryHeaders(failure)), body)
  }

  /** Responds to a call that is refused before its handler runs, and reports the call. */
  refuse(reply: FastifyReply, error: StatusError): void {
    const { request } = reply
    const path = request.routeOptions.url ?? request.url
    if (error instanceof TokenError) this.#listeners.onWrongToken?.(path, peerAddress(request.socket))
    this.#listeners.onAnswered?.("http", path, error.code, reply.elapsedTime)
    this.fail(reply, error, path)
  }

  /** Responds to a request that has not fully arrived. Then closes its connection, because the rest is not read. */
  endUnfinished(reply: FastifyReply, error: StatusError): void {
    reply.raw.once("close", () => reply.request.raw.destroy())
    this.fail(reply.header("connection", "close"), error, reply.request.url)
  }

  /** Responds to a request for a path or method that does not exist. */
  notFound({ method, url }: FastifyRequest, reply: FastifyReply): FastifyReply {
    const isOtherMethod = this.#outputs.has(url.split("?", 1)[0] as string)
    const hint = isOtherMethod ? " Use POST instead." : ""
    return this.fail(reply, new StatusError(Code.UNIMPLEMENTED, `There is no ${method} ${url}.${hint}`), url)
  }

  /**
   * Responds to a request that Fastify refuses before a handler runs, because its body is too long, invalid JSON, or
   * of an unknown type.
   */
  failEarly(
    error: { readonly statusCode?: number; readonly message: string },
    request: FastifyRequest,
    reply: FastifyReply,
  ): void {
    const { statusCode = 500, message } = error
    if (error instanceof StatusError) {
      this.refuse(reply, error)
      return
    }
    if (statusCode >= 500) {
      this.fail(reply, error, request.url)
      return
    }
    const code = statusCode === 413 ? Code.RESOURCE_EXHAUSTED : Code.INVALID_ARGUMENT
    const failure = new StatusError(code, REFUSED[statusCode]?.(request) ?? message)
    const { body } = httpError(shortened(failure), this.#outputs.get(request.routeOptions.url ?? ""))
    this.#sendError(reply.code(statusCode), body)
  }

  #sendError(reply: FastifyReply, body: object): FastifyReply {
    return this.send(reply.type(JSON_TYPE), JSON.stringify(body))
  }
}

/** Messages that replace Fastify's own message if that message does not explain what to send. */
const REFUSED: Readonly<Record<number, (request: FastifyRequest) => string>> = {
  415: ({ headers }) =>
    `A body of type ${headers["content-type"] || "unknown"} is not supported; send application/json or ${BINARY}.`,
}
