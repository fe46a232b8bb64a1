import {
  type Exchange,
  exposedHeaders,
  HEADER_DIALECTS,
  type HeaderLine,
  type Outcome,
  type RejectionAnswer,
} from "@sluice/core"
import type { FastifyReply, FastifyRequest } from "fastify"

/** The callback that a hook calls to continue the request or to fail it. */
export type Done = (error?: Error) => void

/**
 * A request at a hook of Fastify, with its reply. Fastify keeps headers apart from Node's response until it sends them.
 * Headers are therefore set on the reply, so that the app's `onSend` hooks see them and the answer.
 */
export class FastifyExchange implements Exchange<FastifyRequest> {
  readonly request: FastifyRequest
  readonly response: FastifyReply
  /** Continues the request or fails it. */
  readonly done: Done

  constructor(request: FastifyRequest, reply: FastifyReply, done: Done) {
    this.request = request
    this.response = reply
    this.done = done
  }

  get nodeResponse(): FastifyReply["raw"] {
    return this.response.raw
  }

  apply({ removed, headers }: Outcome): void {
    for (const name of removed) this.response.removeHeader(name)
    setHeaders(this.response, headers)
  }

  proceed(): void {
    this.done()
  }

  /**
   * True if a handler timeout has answered while the store was being asked, or if the app has called `reply.hijack()`.
   */
  isTaken(): boolean {
    return this.response.sent
  }

  /**
   * Wraps `reply.send`, because `reply.sent` alone is not enough. It is false while `onSend` hooks run, and after
   * headers were written without Fastify.
   */
  watch(): () => boolean {
    const reply = this.response
    const { send } = reply
    let isSending = false
    reply.send = (payload) => {
      isSending = true
      reply.send = send
      return send.call(reply, payload)
    }
    return () => isSending || reply.sent || reply.raw.headersSent
  }

  send({ status, headers, body }: RejectionAnswer): void {
    const reply = this.response.code(status)
    setHeaders(reply, headers)
    // The body is already a string. Without a serializer, Fastify would add a charset, which
    // problem+json does not have.
    reply.serializer(String).send(body)
  }
}

const NAMES = [...HEADER_DIALECTS.flatMap(exposedHeaders), "Cache-Control", "Content-Type", "Link"]
/**
 * Names in lower case. Otherwise Fastify converts them for each response, a quarter of the cost of setting a header.
 */
const LOWER_CASE = new Map(NAMES.map((name) => [name, name.toLowerCase()]))

/** Sets headers on a reply. */
export function setHeaders(reply: FastifyReply, headers: readonly HeaderLine[]): void {
  // Loop by index: an iterator would cost more than the rest of this function.
  for (let i = 0; i < headers.length; i++) {
    const line = headers[i] as HeaderLine
    reply.header(LOWER_CASE.get(line[0]) ?? line[0], line[1])
  }
}
