import type { IncomingMessage, ServerResponse } from "node:http"
import { type HeaderLine, type Outcome, ServerFacts, type ServerRequest } from "@sluice/core/adapters"
import { NestExchange } from "./exchange.ts"

/** The members of Fastify's request that are read here. */
export interface NestFastifyRequest extends ServerRequest {
  readonly raw: IncomingMessage
  readonly routeOptions: { readonly url?: string }
  readonly ips?: readonly string[]
}

/** The members of Fastify's reply that are used here. */
export interface NestFastifyReply {
  readonly raw: ServerResponse
  readonly sent: boolean
  header(name: string, value: string): unknown
  removeHeader(name: string): unknown
  send(payload?: unknown): unknown
}

/** The facts of a request of Nest on Fastify. Each fact is read only when a rule needs it. */
export class NestFastifyFacts extends ServerFacts<NestFastifyRequest> {
  /** Returns the URL after the app's `rewriteUrl`. */
  get routedUrl(): string | undefined {
    return this.request.raw.url
  }
  /** Returns the pattern of the route, with Nest's global prefix. */
  get route(): string | undefined {
    return this.request.routeOptions.url
  }
  /** Only with this setting, Fastify provides a list of addresses. */
  get proxySetting(): string | undefined {
    return this.request.ips === undefined ? undefined : 'Fastify\'s setting "trustProxy"'
  }
}

/** True if the object is a request of Fastify. */
export function isFastify(request: object): request is NestFastifyRequest {
  return "raw" in request && "routeOptions" in request
}

/** A request of Nest on Fastify. The app's `onSend` hooks read the headers of the reply, so headers are set there. */
export class NestFastifyExchange extends NestExchange {
  declare readonly response: NestFastifyReply

  constructor(request: object, reply: NestFastifyReply) {
    super(request, reply.raw, reply)
  }

  override apply({ removed, headers }: Outcome): void {
    for (const name of removed) this.response.removeHeader(name)
    this.setHeaders(headers)
  }

  override isTaken(): boolean {
    return this.response.sent
  }

  /** Wraps `reply.send`, because `reply.sent` is false while `onSend` hooks run. */
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

  override setHeaders(headers: readonly HeaderLine[]): void {
    for (const [name, value] of headers) this.response.header(name, value)
  }
}
