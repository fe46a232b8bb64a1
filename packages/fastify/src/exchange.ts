import { exposedHeaders, type RejectionAnswer } from "@sluice/core"
import { HEADER_DIALECTS, type HeaderLine, NodeExchange, type Outcome } from "@sluice/core/adapters"
import type { FastifyReply, FastifyRequest } from "fastify"

/** The callback that a hook calls to continue the request or to fail it. */
export type Done = (error?: Error) => void

/**
 * A request at a hook of Fastify, with its reply. Fastify stores headers separately from Node's response until it
 * sends them. Headers are therefore set on the reply, where the app's `onSend` hooks can read them.
 */
export class FastifyExchange extends NodeExchange<FastifyRequest> {
  declare readonly response: FastifyReply

  override apply({ removed, headers }: Outcome): void {
    for (const name of removed) this.response.removeHeader(name)
    this.setHeaders(headers)
  }

  /**
   * True if a handler timeout has sent a response while the store call was pending, or if the app has called
   * `reply.hijack()`.
   */
  override isTaken(): boolean {
    return this.response.sent
  }

  /**
   * Wraps `reply.send`, because `reply.sent` alone is not enough. `reply.sent` is false while `onSend` hooks run, and
   * after headers were written without Fastify.
   */
  override watch(): () => boolean {
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

  override send({ status, headers, body }: RejectionAnswer): void {
    this.setHeaders(headers)
    // The body is already a string. Set a serializer, because otherwise Fastify would add a charset, which
    // problem+json does not define.
    this.response.code(status).serializer(String).send(body)
  }

  override setHeaders(headers: readonly HeaderLine[]): void {
    // Loop by index, because an iterator would cost more than the rest of this function.
    for (let i = 0; i < headers.length; i++) {
      const line = headers[i] as HeaderLine
      this.response.header(LOWER_CASE.get(line[0]) ?? line[0], line[1])
    }
  }
}

const NAMES = [...HEADER_DIALECTS.flatMap(exposedHeaders), "Cache-Control", "Content-Type", "Link"]
/**
 * Header names in lower case, because otherwise Fastify converts them for each response. The conversion is a quarter
 * of the cost of setting a header.
 */
const LOWER_CASE = new Map(NAMES.map((name) => [name, name.toLowerCase()]))
