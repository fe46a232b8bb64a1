import { valueTime } from "../times.ts"
import type { LogFormat } from "./format.ts"
import { jsonFormat } from "./json-lines.ts"
import type { JsonObject } from "./json-value.ts"

const HEADER = "request_"

/** Access logs of Traefik in JSON. Headers are logged as `request_NAME`, if Traefik is configured to log them. */
export const traefik: LogFormat = jsonFormat({
  name: "traefik",
  names: ["ip", "method"],
  hasQuery: true,
  request(line) {
    if (line.RequestMethod === undefined || line.RequestPath === undefined) return undefined
    return {
      atMs: valueTime(line.StartUTC ?? line.StartLocal),
      method: line.RequestMethod,
      url: line.RequestPath,
      status: line.DownstreamStatus,
      address: line.ClientHost ?? line.ClientAddr,
      someHeaders: headersIn(line),
    }
  },
})

function headersIn(line: JsonObject): Record<string, unknown> {
  const names = Object.keys(line).filter((name) => name.startsWith(HEADER))
  return Object.fromEntries(names.map((name) => [name.slice(HEADER.length).toLowerCase(), line[name]]))
}
