import type { IncomingMessage } from "node:http"
import type { RequestFacts } from "@sluice/core"
import { type Guard, type Outcome, RefusalError } from "@sluice/core/adapters"
import { RateLimitException } from "./exception.ts"
import { unsupported } from "./http.ts"

/** A client of socket.io, or a client of ws whose gateway has stored the upgrade request. */
interface SocketClient {
  readonly request?: IncomingMessage
  readonly upgradeReq?: IncomingMessage
  readonly handshake?: { readonly address: string }
}

const NO_REQUEST =
  "Set the option context of GraphQLModule to ({ req, res }) => ({ req, res }), or on Fastify to (req, reply) => ({ req, reply })"
const NO_UPGRADE = "Write handleConnection(client, request) { client.upgradeReq = request } in the gateway"

/** Returns the HTTP request and response in the context of a resolver. Throws TypeError if the context lacks them. */
export function httpIn(context: unknown): readonly [request: object, response: object] {
  const { req, res, reply } = Object(context)
  const request: unknown = req ?? reply?.request
  const response: unknown = res ?? reply ?? Object(request).res
  if (typeof request !== "object" || request === null || typeof response !== "object" || response === null)
    throw unsupported("resolvers without the HTTP request and response", NO_REQUEST)
  return [request, response]
}

/** Returns the facts of one call of a resolver. Nobody says when the call has ended. */
export function factsOfCall(facts: RequestFacts): RequestFacts {
  return Object.assign(facts, { cannotRelease: true })
}

/** Returns the facts of a message: those of the upgrade request of its connection. Throws TypeError if that is unknown. */
function factsOfMessage(client: SocketClient): RequestFacts {
  const upgrade = client.upgradeReq ?? client.request
  if (upgrade === undefined) throw unsupported("messages without their upgrade request", NO_UPGRADE)
  const { method, url, headers, socket } = upgrade
  const remoteAddress = client.handshake?.address ?? socket.remoteAddress
  return { method, url, headers, remoteAddress, cannotRelease: true }
}

/**
 * Checks a message on a WebSocket. Returns true if it may proceed. Rejects with a WsException if it is refused. The
 * promise stays pending if the app has responded.
 */
export async function passMessage(guard: Guard<object>, client: SocketClient): Promise<true> {
  // Decisions are stored on the request, and each message needs its own.
  const message: object = Object.create(client)
  const outcome: Outcome = await guard.check(factsOfMessage(client), message)
  if (outcome.rejection === undefined) return true
  const answer = await guard.answer(outcome, message, client)
  if (answer === undefined) return new Promise(() => {})
  const cause = new RateLimitException(new RefusalError(outcome.decision, answer))
  const { WsException } = await import("@nestjs/websockets")
  throw Object.assign(new WsException({ status: "error", message: cause.message, ...cause.extensions }), {
    cause,
  })
}
