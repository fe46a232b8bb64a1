import { parseCookie } from "cookie"
import { ignoreRejection, isThenable } from "../ground/maybe-promise.ts"
import { classOf } from "../ground/show.ts"
import type { ClientAddressReader, FieldReader, RequestFacts } from "./request.ts"

/** What a reader needs to know, and whom it tells. Each callback is called at most once by each reader. */
export interface FieldContext {
  /** The group that a client is counted in by its address. */
  readonly clientGroup: ClientAddressReader
  /** The `match.path` of the rule that the reader is for: its `route` where the framework names none. */
  readonly matchedPath?: string | undefined
  /** A bare name has no extractor, so the client may choose its value. Called when the reader is compiled. */
  onClientChosen(name: string): void
  /** The request carries a body that no parser has read yet. */
  onBodyMissing(name: string): void
  /** Neither the framework nor the rule names a route. */
  onRouteMissing(): void
  /** An extractor, or a getter of the request, threw; or an extractor answered with a promise or an object of a class. */
  onExtractorFailed(name: string, error: unknown): void
}

const BUILT_IN: ReadonlySet<string> = new Set(["ip", "service", "method", "route"])
const DEEPEST_PATH = 8

type ValueReader = (facts: RequestFacts, request: unknown) => unknown

/** Whether the name is Sluice's own ("ip", "header:x-api-key"), so that an app's extractor cannot have it. */
export function isBuiltInField(name: string): boolean {
  return BUILT_IN.has(name) || name.includes(":")
}

/**
 * Compiles a field to what reads it: `ip` (grouped), `service` (always ""), `method` (HEAD is GET), `route`,
 * `header:x-api-key`, `query:page`, `body:user.email` (at most 8 levels), `param:id`, `cookie:session`, or a bare name:
 * the app's own extractor, else the route parameter, query parameter, body member or header of that name, the first
 * that has a value.
 *
 * A scalar counts as its text, so 1 and "1" are one client. Empty text, NaN, null, lists, objects and repeated
 * parameters are missing. Only a value's own properties are read. Header lines that Node has joined are one text; of
 * repeated cookies the first counts, as for every cookie parser.
 */
export function compileField(
  name: string,
  extractor: ((request: unknown) => unknown) | undefined,
  context: FieldContext,
): FieldReader {
  // Empty, and yet no missing value: the whole service is one client.
  if (name === "service") return () => ""
  const read = compileValue(name, extractor, context)
  const isAddress = name === "ip"
  let failed = false
  return (facts, request) => {
    try {
      const value = read(facts, request)
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

function compileValue(
  name: string,
  extractor: ((request: unknown) => unknown) | undefined,
  context: FieldContext,
): ValueReader {
  if (!isBuiltInField(name)) {
    return extractor === undefined ? compileClientChosen(name, context) : compileExtractor(name, extractor)
  }
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

function scalarText(value: unknown): string | undefined {
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
  // Never the raw path: its dynamic segments would make a counter each.
  return ({ route }) => {
    if (typeof route === "string" && route !== "") return route
    if (matchedPath === undefined && !told) {
      told = true
      onRouteMissing()
    }
    return matchedPath
  }
}

/** Over HTTP/2 and 3 the host is `:authority`, beside which a `host` of the client's own says nothing (RFC 9113 section 8.3.1). */
const AUTHORITY = ":authority"

function compileHeader(key: string): ValueReader {
  const lower = key.toLowerCase()
  if (lower !== "host") return ({ headers }) => onlyOne(ownValue(headers, lower))
  return ({ headers }) => onlyOne(ownValue(headers, AUTHORITY) ?? ownValue(headers, lower))
}

function compileQuery(key: string): ValueReader {
  return ({ query, url }) => {
    if (isObject(query)) return ownValue(query, key)
    return typeof url === "string" ? onlyOne(new URLSearchParams(queryOf(url)).getAll(key)) : undefined
  }
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

/** True for the `body` of a `Request` of the fetch API, which has to be read and parsed first. */
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
  return (facts, request) => {
    for (const read of readers) {
      const text = scalarText(read(facts, request))
      if (text !== undefined) return text
    }
    return undefined
  }
}

function compileExtractor(name: string, extractor: (request: unknown) => unknown): ValueReader {
  return (_facts, request) => {
    const value = extractor(request)
    if (!isObject(value)) return value
    if (isThenable(value)) {
      ignoreRejection(value)
      throw new TypeError(`The extractor of "${name}" answered with a promise; it must answer at once`)
    }
    // A list or a plain object may be what a client has sent; this is what the app has by mistake, such as a database's id.
    const what = classOf(value)
    if (what === undefined) return value
    throw new TypeError(
      `The extractor of "${name}" answered with ${what}; it must answer with a text or a number`,
    )
  }
}

function ownValue(holder: unknown, key: string): unknown {
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

/** Whether a request has a body (RFC 9112 section 6.3). Where the headers are not known it may have one. */
export function carriesBody(headers: RequestFacts["headers"]): boolean {
  if (headers === undefined) return true
  const length = headers["content-length"]
  return headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0")
}
