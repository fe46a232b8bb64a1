import { valueTime } from "../times.ts"
import type { LogFormat } from "./format.ts"
import { jsonFormat } from "./json-lines.ts"
import { objectOf } from "./json-value.ts"

/** Requests in exports of Google Cloud Logging: entries with `httpRequest`, from load balancers and Cloud Run. */
export const gcp: LogFormat = jsonFormat({
  name: "gcp",
  names: ["ip", "method", "header:user-agent", "header:referer"],
  hasQuery: true,
  request(line) {
    const request = objectOf(line.httpRequest)
    if (request?.requestMethod === undefined || request.requestUrl === undefined) return undefined
    return {
      atMs: valueTime(line.timestamp),
      method: request.requestMethod,
      url: request.requestUrl,
      status: request.status,
      address: request.remoteIp,
      someHeaders: { "user-agent": request.userAgent, referer: request.referer },
    }
  },
})
