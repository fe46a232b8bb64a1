import { parseCookie } from "cookie"
import type { ClientAddressReader, FieldReader, RequestFacts } from "./request.ts"

/** The context of a field reader: its settings and its callbacks. Each reader calls each callback at most once. */
export interface FieldContext {
  /** Reads the group in which a client is counted by its address. */
  readonly clientGroup: ClientAddressReader
  /** The rule's `match.path`. It replaces `route` if the framework does not provide the route. */
  readonly matchedPath?: string | undefined
  /** Called while compiling a bare name, because the client may choose its value. */
  onClientChosen(name: string): void
  /** Called if the request has a body that no parser has read yet. */
  onBodyMissing(name: string): void
  /** Called if neither the framework nor the rule provides a route. */
  onRouteMissing(): void
  /** Called if a getter of the request threw. */
  onExtractorFailed(name: string, error: unknown): void
}

const BUILT_IN: ReadonlySet<string> = new Set(["ip", "service", "method", "route"])
const DEEPEST_PATH = 8

type ValueReader = (facts: RequestFacts) => unknown

/** True if the name is built in, such as "ip" or "header:x-api-key". An app's extractor cannot have such a name. */
export function isBuiltInField(name: string): boolean {
  return BUILT_IN.has(name) || name.includes(":")
}

/**
 * Returns the reader of a field. Fields are `ip` (grouped), `service` (always ""), `method` (HEAD is GET), `route`,
 * `header:x-api-key`, `query:page`, `body:user.email` (at most 8 levels), `param:id`, `cookie:session`, and bare
 * names. A bare name is the route parameter, query parameter, body member or header of that name: the first of these
 * that has a value.
 *
 * A scalar counts as its string, so 1 and "1" are one client. Empty strings, NaN, null, lists, objects and repeated
 * parameters count as missing. Only own properties of a value are read. Header lines that Node has joined count as
 * one string. The first of several cookies with the same name counts, as in every cookie parser.
 */
export function compileField(name: string, context: FieldContext): FieldReader {
  // For `service`, an empty string is not a missing value, because the whole service is one client.
  if (name === "service") return () => ""
  const read = compileValue(name, context)
  const isAddress = name === "ip"
  let failed = false
  return (facts) => {
    try {
      const value = read(facts)
      return isAddress ? (value as string | undefined) : scalarText(value)
    } catch (error) {
      if (!failed) {
        failed = true
        context.onExtractorFailed(name, error)
      }
      return undefined
    }
  }
}

function compileValue(name: string, context: FieldContext): ValueReader {
  if (!isBuiltInField(name)) return compileClientChosen(name, context)
  const colon = name.indexOf(":")
  const key = name.slice(colon + 1)
  switch (colon === -1 ? name : name.slice(0, colon)) {
    case "ip":
      return context.clientGroup
    case "method":
      return ({ method }) => (method === "GET" ? method : methodText(method))
    case "route":
      return compileRoute(context)
    case "header":
      return compileHeader(key)
    case "query":
      return compileQuery(key)
    case "body":
      return compileBody(name, key, context)
    case "param":
      return ({ params }) => ownValue(params, key)
    case "cookie":
      return compileCookie(key)
    default:
      throw new TypeError(`"${name}" is not a field`)
  }
}

/** Returns the text of a scalar value; undefined for any other value, which counts as missing. */
export function scalarText(value: unknown): string | undefined {
  switch (typeof value) {
    case "string":
      return value === "" ? undefined : value
    case "number":
      return Number.isFinite(value) ? String(value) : undefined
    case "boolean":
    case "bigint":
      return String(value)
  }
  return undefined
}

function methodText(method: unknown): unknown {
  if (typeof method !== "string") return undefined
  const text = method.toUpperCase()
  return text === "HEAD" ? "GET" : text
}

function compileRoute({ matchedPath, onRouteMissing }: FieldContext): ValueReader {
  let told = false
  // Never use the raw path, because each value of its dynamic segments would get its own counter.
  return ({ route }) => {
    if (typeof route === "string" && route !== "") return route
    if (matchedPath === undefined && !told) {
      told = true
      onRouteMissing()
    }
    return matchedPath
  }
}

/**
 * The header that contains the host over HTTP/2 and HTTP/3. A `host` header that the client adds is then ignored (RFC
 * 9113 section 8.3.1).
 */
const AUTHORITY = ":authority"

function compileHeader(key: string): ValueReader {
  const lower = key.toLowerCase()
  if (lower !== "host") return ({ headers }) => onlyOne(ownValue(headers, lower))
  return ({ headers }) => onlyOne(ownValue(headers, AUTHORITY) ?? ownValue(headers, lower))
}

function compileQuery(key: string): ValueReader {
  return ({ query, url }) => (isObject(query) ? ownValue(query, key) : onlyOne(queryValues(url, key)))
}

/**
 * Returns the values of a query parameter of a URL. The URL may be any value, because callers of the core may pass any
 * value.
 */
export function queryValues(url: unknown, key: string): readonly string[] {
  return typeof url === "string" ? new URLSearchParams(queryOf(url)).getAll(key) : []
}

function compileBody(name: string, key: string, { onBodyMissing }: FieldContext): ValueReader {
  const path = key.split(".")
  let told = false
  return ({ body, headers }) => {
    if (!told && (body === undefined ? carriesBody(headers) : isUnreadStream(body))) {
      told = true
      onBodyMissing(name)
    }
    return path.length > DEEPEST_PATH ? undefined : path.reduce(ownValue, body)
  }
}

/** True if the body is the stream of a fetch API `Request`, which the app must first read and parse. */
function isUnreadStream(body: unknown): boolean {
  return typeof (body as { readonly getReader?: unknown } | null)?.getReader === "function"
}

function compileCookie(key: string): ValueReader {
  return ({ cookies, headers }) => {
    if (isObject(cookies)) return ownValue(cookies, key)
    const field = ownValue(headers, "cookie")
    const text = Array.isArray(field) ? field.join("; ") : field
    return typeof text === "string" ? ownValue(parseCookie(text), key) : undefined
  }
}

function compileClientChosen(name: string, context: FieldContext): ValueReader {
  context.onClientChosen(name)
  const readers = [
    ({ params }: RequestFacts) => ownValue(params, name),
    compileQuery(name),
    compileBody(name, name, context),
    compileHeader(name),
  ]
  return (facts) => {
    for (const read of readers) {
      const text = scalarText(read(facts))
      if (text !== undefined) return text
    }
    return undefined
  }
}

/** Returns an own member of a value; undefined if the value has no such member. */
export function ownValue(holder: unknown, key: string): unknown {
  return isObject(holder) && Object.hasOwn(holder, key) ? holder[key] : undefined
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null
}

function onlyOne(value: unknown): unknown {
  return Array.isArray(value) ? (value.length === 1 ? value[0] : undefined) : value
}

function queryOf(url: string): string | undefined {
  const target = url.split("#", 1)[0] as string
  const mark = target.indexOf("?")
  return mark === -1 ? undefined : target.slice(mark + 1)
}

/**
 * True if a request has a body (RFC 9112 section 6.3). If the headers are unknown, the request is assumed to have a
 * body.
 */
export function carriesBody(headers: RequestFacts["headers"]): boolean {
  if (headers === undefined) return true
  const length = headers["content-length"]
  return headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0")
}
