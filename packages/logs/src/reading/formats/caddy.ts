import { arrivalTime, valueTime } from "../times.ts"
import type { LogFormat } from "./format.ts"
import { jsonFormat } from "./json-lines.ts"
import { type JsonObject, numberOf, objectOf } from "./json-value.ts"

/**
 * Access logs of Caddy. `ts` is the time when the response ended, and `duration` is in seconds. Caddy hides the
 * headers Cookie and Authorization, unless `log_credentials` is set.
 */
export const caddy: LogFormat = jsonFormat({
  name: "caddy",
  names: ["ip", "method"],
  hasQuery: true,
  request(line) {
    const request = objectOf(line.request)
    if (request?.uri === undefined || request.method === undefined || !isAccess(line)) return undefined
    return {
      atMs: arrivalTime(valueTime(line.ts), Math.round((numberOf(line.duration) ?? 0) * 1_000)),
      method: request.method,
      url: request.uri,
      status: line.status,
      // Until version 2.7, Caddy logged only the address of the connection. Until version 2.5, this address contained
      // a port.
      address: request.client_ip ?? request.remote_ip ?? request.remote_addr,
      headers: objectOf(request.headers),
    }
  },
})

/** True for the access line of a request. Errors and messages about upstreams have separate lines. */
function isAccess({ logger, msg }: JsonObject): boolean {
  if (typeof logger === "string") return /^http\.log\.access(?:\.|$)/.test(logger)
  return msg === undefined || msg === "handled request"
}
