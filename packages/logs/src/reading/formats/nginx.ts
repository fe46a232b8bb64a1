import { LogError } from "../../log-error.ts"
import { unescapedFormat } from "../escapes.ts"
import { timeResolution } from "../field-sources.ts"
import { CLF_LENGTH, clfTimeReader, isoTime, textTime } from "../times.ts"
import type { LogFormat } from "./format.ts"
import { formatLineReader, segmentsOf } from "./format-line.ts"
import type { FormatPart, Meaning, Variable } from "./segment.ts"

/** The name and options of a format that an nginx format line describes. */
export interface NginxOptions {
  readonly name?: string | undefined
  /** True if a log line may end with values that the format does not describe. */
  readonly allowsMore?: boolean | undefined
  /** Meanings of variables that nginx lacks or defines differently. */
  readonly meanings?: Readonly<Record<string, Meaning>> | undefined
}

/**
 * Returns the format of nginx's `log_format`, given as the text alone, in quotes, or as the whole directive. Throws
 * LogError if lines of the format cannot be read.
 */
export function nginxFormat(
  given: string,
  { name = given, allowsMore, meanings = {} }: NginxOptions = {},
): LogFormat {
  const format = { name, parts: partsOf(formatText(given), meanings), allowsMore }
  const { variables } = segmentsOf(format)
  return {
    name,
    encoding: "latin1",
    resolutionMs: timeResolution(variables),
    open: (file, map) => formatLineReader(format, file, map),
  }
}

/** True if the text contains a variable of nginx. */
export function isNginxLine(text: string): boolean {
  return /\$\{?[a-z]/i.test(text)
}

const DIRECTIVE = /^\s*log_format\s+\S+\s+/
const QUOTED = /'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"/gs

/** Returns the text of the format, without the surrounding directive. */
function formatText(given: string): string {
  const hasDirective = DIRECTIVE.test(given)
  const [, escaping, rest = ""] =
    /^(?:escape=(\w+)\s+)?(.*)$/s.exec(given.replace(DIRECTIVE, "").trim()) ?? []
  if (escaping === "none") {
    throw new LogError(
      "A format with escape=none cannot be read: clients can write whole lines into it; use escape=default or escape=json",
    )
  }
  const text = hasDirective ? rest.replace(/;\s*$/, "").trim() : rest
  // The directive contains several quoted strings, as in a configuration file. A format itself may also begin and end
  // with a double quote.
  const isQuoted = /^'.*'$/s.test(text) || (hasDirective && /^".*"$/s.test(text))
  if (!isQuoted) return unescapedFormat(text)
  const parts = [...text.matchAll(QUOTED)].map(([, single, double]) => single ?? double ?? "")
  return unescapedFormat(parts.join(""))
}

const VARIABLE = /\$\{(\w+)\}|\$(\w+)/g

function partsOf(text: string, meanings: Readonly<Record<string, Meaning>>): FormatPart[] {
  // These three variables together are the target. Nothing separates them, so they are read as one variable.
  const joined = text.replace(/\$uri\$is_args\$(?:args|query_string)/, "$request_uri")
  const parts: FormatPart[] = []
  let at = 0
  for (const match of joined.matchAll(VARIABLE)) {
    if (match.index > at) parts.push(joined.slice(at, match.index))
    parts.push(variableOf((match[1] ?? match[2]) as string, meanings))
    at = match.index + match[0].length
  }
  if (at < joined.length) parts.push(joined.slice(at))
  return parts
}

const clfTime = clfTimeReader()

const MEANINGS: Readonly<Record<string, Meaning>> = {
  remote_addr: { kind: "address" },
  remote_user: { kind: "user" },
  request: { kind: "request" },
  request_method: { kind: "method" },
  request_uri: { kind: "target" },
  uri: { kind: "path" },
  status: { kind: "status" },
  msec: { kind: "time", read: textTime, resolutionMs: 1, isEnd: true },
  time_iso8601: { kind: "time", read: isoTime, resolutionMs: 1_000, isEnd: true },
  time_local: {
    kind: "time",
    read: (text) => (text.length === CLF_LENGTH ? clfTime(text, 0) : Number.NaN),
    resolutionMs: 1_000,
    isEnd: true,
  },
  request_time: { kind: "duration", unitMs: 1_000 },
  remote_port: { kind: "port" },
  server_port: { kind: "port" },
}

/** Variables whose values contain no spaces, in addition to times and addresses. */
const WORDS = new Set([
  ...["body_bytes_sent", "bytes_sent", "request_length", "connection", "connection_requests", "pid", "pipe"],
  ...["host", "server_name", "server_addr", "server_protocol", "scheme"],
  ...["request_id", "request_completion", "ssl_protocol", "ssl_cipher", "hostname", "gzip_ratio"],
])
/** Variables whose value contains one word for each upstream that nginx tried. */
const UPSTREAM =
  /^upstream_(?:addr|status|(?:response|connect|header|queue|first_byte|session)_time|(?:response_length|bytes_sent|bytes_received))$/
const WORD_KINDS = new Set<Meaning["kind"]>(["address", "port", "method", "status", "time", "duration"])

function variableOf(name: string, meanings: Readonly<Record<string, Meaning>>): Variable {
  const meaning = meanings[name] ?? MEANINGS[name] ?? prefixMeaning(name)
  const isLocal = name === "time_local"
  return {
    text: `$${name}`,
    names: [name],
    meaning,
    isWord: !isLocal && (WORDS.has(name) || WORD_KINDS.has(meaning.kind)),
    isList: UPSTREAM.test(name),
    length: isLocal ? CLF_LENGTH : undefined,
  }
}

function prefixMeaning(name: string): Meaning {
  if (name.startsWith("http_"))
    return { kind: "header", name: name.slice(5).toLowerCase().replaceAll("_", "-") }
  return name.startsWith("cookie_") ? { kind: "cookie", name: name.slice(7) } : { kind: "other" }
}
