import { ownValue, queryValues } from "./field.ts"
import type { RequestFacts } from "./request.ts"

/** The headers in which clients may specify another method for a POST. */
const OVERRIDES = ["x-http-method-override", "x-http-method", "x-method-override"]

/**
 * True if the app might handle the request as one of these methods, which are in upper case. A method override may
 * run before or after the limiter, and the limiter does not know whether there is one. So a request counts as each
 * method that it specifies, and a POST that specifies another method still counts as POST too. For a GET or HEAD,
 * only `_method` in the query counts, which a method override reads only if it is configured to. Headers of a GET are
 * ignored, because reading them for each GET would take time.
 */
export function hasMethod(facts: RequestFacts, methods: ReadonlySet<string>): boolean {
  const { method, originalMethod } = facts
  if (isAmong(methods, method) || isAmong(methods, originalMethod)) return true
  if (method === undefined) return false
  const isReading = method === "GET" || method === "HEAD"
  const named = isReading ? namedInQuery(facts.url) : namedBy(facts)
  if (named === undefined) return false
  return (
    named.some((name) => isAmong(methods, name)) || (!isReading && named.length > 0 && methods.has("POST"))
  )
}

/** Returns the methods that a request specifies. Returns undefined for nearly all requests, which specify no method. */
function namedBy({ headers, url, body }: RequestFacts): readonly string[] | undefined {
  let named = namedInQuery(url)
  for (let i = 0; i < OVERRIDES.length; i++) named = withNames(named, headers?.[OVERRIDES[i] as string])
  return withNames(named, ownValue(body, "_method"))
}

function namedInQuery(url: string | undefined): readonly string[] | undefined {
  const start = typeof url === "string" ? url.indexOf("?") : -1
  if (url === undefined || start === -1) return undefined
  // Parse the query only if it can contain the name, because parsing is expensive. An encoded name contains a "%".
  if (!url.includes("_method", start) && !url.includes("%", start)) return undefined
  const values = queryValues(url, "_method")
  return values.length === 0 ? undefined : withNames(undefined, values)
}

function withNames(named: readonly string[] | undefined, value: unknown): readonly string[] | undefined {
  if (value === undefined) return named
  const found = [value].flat().flatMap((each) => (typeof each === "string" ? each.split(",") : []))
  return [...(named ?? []), ...found.map((name) => name.trim())]
}

function isAmong(methods: ReadonlySet<string>, name: unknown): boolean {
  return typeof name === "string" && methods.has(name.toUpperCase())
}
