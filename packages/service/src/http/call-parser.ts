import type { IncomingMessage } from "node:http"
import { withExactNumbers } from "@sluice/core"
import type { FastifyInstance, FastifyRequest } from "fastify"
import type { Arrival, Arrivals } from "../bounds/arrivals.ts"
import type { Call } from "../calls.ts"
import { JsonList, JsonScan, MOST_VALUES, MOST_VALUES_OF_RULES } from "../wire/json-list.ts"
import { BINARY } from "./http-answers.ts"
import { isJson, readBody } from "./http-body.ts"

/** The configuration of a route. Empty for paths that do not exist. */
export interface RouteConfig {
  readonly call?: Call
}

/** A request whose body may not have arrived yet. */
export interface ArrivingRequest extends FastifyRequest {
  arrival: Arrival | null
}

/**
 * Adds a parser for the bodies of calls, which applies the bounds for arriving requests. A call may define its own
 * bound.
 */
export function addCallParser(app: FastifyInstance, arrivals: Arrivals, maxMessageBytes: number): void {
  app.removeAllContentTypeParsers()
  const parseJson = app.getDefaultJsonParser("ignore", "ignore")
  app.addContentTypeParser(["application/json", BINARY], (request, payload, parsed) => {
    const { call } = request.routeOptions.config as RouteConfig
    const { arrival } = request as ArrivingRequest
    const isBatch = call?.requestsIn !== undefined
    const most = isBatch || call?.list === undefined ? undefined : MOST_VALUES_OF_RULES
    let json: JsonScan | undefined
    const scan = (body: Buffer): void => {
      // Skip the scan, because most bodies are too short to contain too many values.
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
}
