import { setTimeout } from "node:timers/promises"
import replyFrom from "@fastify/reply-from"
import type { Limiter } from "@sluice/core"
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify"
import type { DecisionClient, Verdict } from "./decision-client.ts"

/**
 * The behavior of a gateway while the decision service is unavailable: admit all requests, admit none, or decide with
 * its own limiter.
 */
export type WhenGone = "open" | "closed" | Limiter<FastifyRequest>

export interface GatewayOptions {
  /** URL to forward requests to: "http://127.0.0.1:3000". */
  readonly upstream: string
  /** The service whose rules apply. */
  readonly serviceId: number
  readonly decisions: DecisionClient
  readonly whenGone: WhenGone
}

/**
 * Creates a reverse proxy. The proxy requests a decision about each request from the decision service, and then
 * forwards or refuses the request.
 */
export function createGateway({ upstream, serviceId, decisions, whenGone }: GatewayOptions): FastifyInstance {
  const gateway = Fastify()
  // Forward bodies without parsing them, with any type and length.
  gateway.removeAllContentTypeParsers()
  gateway.addContentTypeParser("*", (_request, body, done) => done(null, body))
  gateway.register(replyFrom, { base: upstream })

  gateway.addHook("onRequest", async (request, reply) => {
    const verdict = await decisions
      .ask(serviceId, whatIsKnown(request))
      .catch(() => decideAlone(request, whenGone))
    reply.headers(verdict.headers)
    if (!verdict.shouldForward) return reply.code(verdict.statusCode).send(verdict.body)
    // A leaky bucket releases requests one by one.
    if (verdict.delayMs > 0) await setTimeout(verdict.delayMs)
  })
  gateway.all("/*", (_request, reply) => {
    // If the upstream also limits, it uses the same header names. The gateway's headers win.
    const own = reply.getHeaders()
    return reply.from(undefined, {
      rewriteHeaders: (headers) => Object.assign({}, headers, own),
      // Do not show clients the address of the upstream or the reason for the failure.
      onError: (failed) => failed.code(502).type("text/plain").send("Please try again later.\n"),
    })
  })
  return gateway
}

/**
 * Returns the facts that rules can use. A real gateway takes the user from its authentication, and never from a header
 * that anyone can send.
 */
function whatIsKnown({ ip, method, url, headers }: FastifyRequest): object {
  return { ip, method, url, user_id: headers["x-user-id"] }
}

async function decideAlone(request: FastifyRequest, whenGone: WhenGone): Promise<Verdict> {
  if (whenGone === "open") return { shouldForward: true, headers: {}, delayMs: 0, statusCode: 0, body: "" }
  if (whenGone === "closed") {
    const headers = { "retry-after": "1" }
    return { shouldForward: false, headers, delayMs: 0, statusCode: 503, body: "Please try again later.\n" }
  }
  const { allowed, retryAfterMs } = await whenGone.decide(request)
  const headers: Record<string, string> = allowed
    ? {}
    : { "retry-after": String(Math.max(1, Math.ceil(retryAfterMs / 1000))) }
  return { shouldForward: allowed, headers, delayMs: 0, statusCode: 429, body: "Please try again later.\n" }
}
