import { addressIn } from "../addresses.ts"
import { quoteFrom, unescaped } from "../escapes.ts"
import { mapTarget } from "../field-map.ts"
import { fieldSet } from "../logged-fields.ts"
import type { OpenRecord } from "../record.ts"
import { isToken, relativeTarget } from "../targets.ts"
import { CLF_LENGTH, clfTimeReader } from "../times.ts"
import { type LineReader, type LineResult, type LogFormat, SKIPPED } from "./format.ts"
import { nginxFormat } from "./nginx.ts"

const COMMON_LINE = '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent'
const COMBINED_LINE = `${COMMON_LINE} "$http_referer" "$http_user_agent"`

/** The common log format of nginx and Apache. Servers may append members, which are not read. */
export const common: LogFormat = standardFormat("common", COMMON_LINE)

/** The combined log format of nginx and Apache. Servers may append members, which are not read. */
export const combined: LogFormat = standardFormat("combined", COMBINED_LINE)

function standardFormat(name: string, line: string): LogFormat {
  const mapped = nginxFormat(line, { name, allowsMore: true })
  const hasHeaders = line === COMBINED_LINE
  return {
    name,
    encoding: "latin1",
    resolutionMs: 1_000,
    open(file, map) {
      const isFast = Object.entries(map).every(([field, source]) => isUserField(field, source))
      return isFast ? standardReader(file, hasHeaders, Object.keys(map)) : mapped.open(file, map)
    },
  }
}

/** True if an entry of `--map` reads a bare field from the remote user, as most entries do. */
function isUserField(field: string, source: string): boolean {
  return mapTarget(field).kind === "named" && (source === "remote_user" || source === "$remote_user")
}

/**
 * Returns a reader that uses no regular expressions and no array per line, because it reads millions of lines.
 *
 * The client chooses the remote user, which may contain a space and "[10/Oct/2025:13:55:36 +0000]". The remote user
 * cannot contain a quote, because servers escape quotes, so the time is read backwards from the first quote.
 */
function standardReader(file: number, hasHeaders: boolean, userFields: readonly string[]): LineReader {
  const timeAt = clfTimeReader()
  const headerNames = hasHeaders ? ["header:referer", "header:user-agent"] : []
  const onlyFields = fieldSet({ names: ["ip", "method", ...headerNames, ...userFields], hasQuery: true })

  function namedAt(line: string, from: number, to: number, isEscaped: boolean): OpenRecord["named"] {
    const text = valueAt(line, from, to, isEscaped)
    const user = text === '""' ? undefined : text
    const named: Record<string, string | undefined> = {}
    for (const field of userFields) named[field] = user
    return named
  }

  return {
    read(line, number): LineResult {
      const start = requestQuote(line)
      if (start < 33 || line.charCodeAt(start - 2) !== RIGHT || line.charCodeAt(start - 29) !== LEFT) {
        return undefined
      }
      const atMs = timeAt(line, start - 2 - CLF_LENGTH)
      const addressEnd = line.indexOf(" ")
      const identEnd = line.indexOf(" ", addressEnd + 1)
      const address = addressIn(line.slice(0, addressEnd))
      const isParsed = !Number.isNaN(atMs) && identEnd < start - 30 && line.charCodeAt(start - 30) === SPACE
      if (!isParsed || address === null) return undefined

      const isEscaped = line.includes("\\")
      const end = isEscaped ? quoteFrom(line, start + 1) : line.indexOf('"', start + 1)
      const bytesEnd = end === -1 ? -1 : afterBytes(line, end)
      if (bytesEnd === -1) return undefined
      const headers = hasHeaders ? headersAt(line, bytesEnd, isEscaped) : NO_HEADERS
      if (headers === undefined) return undefined

      const space = line.indexOf(" ", start + 1)
      const targetEnd = beforeProtocol(line, end)
      if (space === -1 || space + 1 >= targetEnd || !isToken(line, start + 1, space)) return SKIPPED
      const target = line.slice(space + 1, targetEnd)
      return {
        atMs,
        method: methodAt(line, start + 1, space),
        url: relativeTarget(isEscaped ? unescaped(target) : target),
        status: statusAt(line, end + 2),
        remoteAddress: address,
        headers: hasHeaders ? headers : undefined,
        cookies: undefined,
        named: userFields.length === 0 ? undefined : namedAt(line, identEnd + 1, start - 30, isEscaped),
        live: undefined,
        onlyFields,
        file,
        line: number,
      }
    },
  }
}

const SPACE = 32
const LEFT = 91
const RIGHT = 93
const DASH = 45
const ZERO = 48
const BACKSLASH = 92

interface StandardHeaders {
  readonly [name: string]: string | undefined
  readonly referer?: string | undefined
  readonly "user-agent"?: string | undefined
}

const NO_HEADERS: StandardHeaders = {}

/** Returns the position of the quote before the request; -1 if there is no such quote. */
function requestQuote(line: string): number {
  let quote = line.indexOf('"')
  // Apache writes \" for a quote in the name of the user, and "" for an empty name.
  if (line.charCodeAt(quote - 1) === BACKSLASH) quote = quoteFrom(line, 0)
  return quote !== -1 && line.startsWith('" [', quote + 1) ? line.indexOf('"', quote + 2) : quote
}

/** Returns the position after the status and the number of bytes, which follow the request; -1 if either is invalid. */
function afterBytes(line: string, end: number): number {
  if (line.charCodeAt(end + 1) !== SPACE) return -1
  let at = end + 2
  if (line.charCodeAt(at) === DASH) at++
  else if (isDigit(line, at) && isDigit(line, at + 1) && isDigit(line, at + 2)) at += 3
  else return -1
  if (line.charCodeAt(at) !== SPACE) return -1
  const bytesAt = ++at
  if (line.charCodeAt(at) === DASH) at++
  else while (isDigit(line, at)) at++
  return at > bytesAt && (at === line.length || line.charCodeAt(at) === SPACE) ? at : -1
}

/** Reads ` "referer" "user agent"` at a position. Returns undefined if the text at this position is different. */
function headersAt(line: string, at: number, isEscaped: boolean): StandardHeaders | undefined {
  if (!line.startsWith(' "', at)) return undefined
  const refererEnd = isEscaped ? quoteFrom(line, at + 2) : line.indexOf('"', at + 2)
  if (refererEnd === -1 || !line.startsWith(' "', refererEnd + 1)) return undefined
  const agentEnd = isEscaped ? quoteFrom(line, refererEnd + 3) : line.indexOf('"', refererEnd + 3)
  if (agentEnd === -1 || (agentEnd + 1 < line.length && line.charCodeAt(agentEnd + 1) !== SPACE)) {
    return undefined
  }
  return {
    referer: valueAt(line, at + 2, refererEnd, isEscaped),
    "user-agent": valueAt(line, refererEnd + 3, agentEnd, isEscaped),
  }
}

function valueAt(line: string, from: number, to: number, isEscaped: boolean): string | undefined {
  if (to === from || (to === from + 1 && line.charCodeAt(from) === DASH)) return undefined
  const text = line.slice(from, to)
  return isEscaped ? unescaped(text) : text
}

/** Returns the end of the target, which is before " HTTP/1.1"; -1 if the line contains no protocol. */
function beforeProtocol(line: string, end: number): number {
  if (line.startsWith(" HTTP/", end - 9)) return end - 9
  const space = line.lastIndexOf(" ", end - 1)
  return line.startsWith("HTTP/", space + 1) ? space : -1
}

/** Returns the method. The frequent methods are constants, so no string is allocated for them. */
function methodAt(line: string, from: number, to: number): string {
  if (line.startsWith("GET ", from)) return "GET"
  if (line.startsWith("POST ", from)) return "POST"
  return line.slice(from, to)
}

/** Returns the status; undefined for "-", and for 000, which means that no response was sent. */
function statusAt(line: string, at: number): number | undefined {
  if (line.charCodeAt(at) === DASH) return undefined
  const hundreds = line.charCodeAt(at) - ZERO
  const status = hundreds * 100 + (line.charCodeAt(at + 1) - ZERO) * 10 + line.charCodeAt(at + 2) - ZERO
  return hundreds === 0 ? undefined : status
}

function isDigit(line: string, at: number): boolean {
  const code = line.charCodeAt(at)
  return code >= 48 && code <= 57
}
