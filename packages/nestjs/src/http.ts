import type { ServerResponse } from "node:http"
import type { RequestFacts } from "@sluice/core"
import { NestExchange } from "./exchange.ts"
import { isExpress, NestExpressFacts } from "./express.ts"
import { isFastify, NestFastifyExchange, NestFastifyFacts, type NestFastifyReply } from "./fastify.ts"

/**
 * Returns the facts of a request of Express or Fastify; undefined if it is not one. Also reads requests that the app
 * passes to the limiter directly.
 */
export function factsOf(request: object): RequestFacts | undefined {
  if (isFastify(request)) return new NestFastifyFacts(request, request.raw)
  return isExpress(request) ? new NestExpressFacts(request, request) : undefined
}

/** Returns the exchange of a request. `response` is the response of the same platform. */
export function exchangeOf(request: object, response: object): NestExchange {
  return isFastify(request)
    ? new NestFastifyExchange(request, response as NestFastifyReply)
    : new NestExchange(request, response as ServerResponse)
}

/** Returns the error for a request that this package cannot limit. `remedy` says what the app can do. */
export function unsupported(what: string, remedy: string): TypeError {
  return new TypeError(`@sluice/nestjs cannot limit ${what}. ${remedy}.`)
}
