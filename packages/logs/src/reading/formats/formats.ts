import { LogError } from "../../log-error.ts"
import { alb, elb } from "./alb.ts"
import { apacheFormat, isApacheLine } from "./apache.ts"
import { caddy } from "./caddy.ts"
import { cloudfront } from "./cloudfront.ts"
import { combined, common } from "./combined.ts"
import { fastify } from "./fastify.ts"
import type { FieldMap, LogFormat } from "./format.ts"
import { gcp } from "./gcp.ts"
import { mappedJson } from "./mapped-json.ts"
import { isNginxLine, nginxFormat } from "./nginx.ts"
import { pinoHttp } from "./pino-http.ts"
import { traefik } from "./traefik.ts"
import { vhostCombined } from "./vhost-combined.ts"

/** Formats by name. Combined must be tried before common, because the common format also accepts combined lines. */
const FORMATS: readonly LogFormat[] = [
  ...[
    combined,
    common,
    vhostCombined,
    alb,
    elb,
    cloudfront,
    caddy,
    traefik,
    gcp,
    pinoHttp,
    fastify,
    mappedJson,
  ],
]

/**
 * Returns the format with this name, or the format that a format line of nginx or Apache describes. Throws LogError
 * if the text is neither.
 */
export function formatOf(given: string): LogFormat {
  const named = FORMATS.find(({ name }) => name === given.trim().toLowerCase())
  if (named !== undefined) return named
  if (isNginxLine(given)) return nginxFormat(given)
  if (isApacheLine(given)) return apacheFormat(given)
  const names = FORMATS.map(({ name }) => name).join(", ")
  throw new LogError(
    `--format ${JSON.stringify(given)} is not a format: give the log_format line of nginx, the LogFormat line of Apache, or one of ${names}`,
  )
}

/**
 * Returns the format in which most of the lines are requests; undefined if no line is a request in any format. JSON
 * lines that match no format are read by the fields of `map`, if `map` contains a time.
 */
export function detectFormat(lines: readonly string[], map: FieldMap): LogFormat | undefined {
  let best: LogFormat | undefined
  let most = 0
  for (const format of FORMATS) {
    const isJson = format.encoding === "utf8"
    if (format === mappedJson && (best !== undefined || map.time === undefined)) continue
    // If the format is not JSON, its variables are checked once the format is known.
    const reader = format.open(0, isJson ? map : {})
    const count = lines.filter((line, index) => typeof reader.read(line, index + 1) === "object").length
    if (count > most) {
      best = format
      most = count
    }
  }
  return best
}
