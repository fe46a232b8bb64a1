import { METHODS } from "node:http"
import { parse, pathToRegexp, type Token, TokenData } from "path-to-regexp"
import { remember } from "../../ground/address.ts"
import { show, suggestion } from "../../ground/show.ts"
import type { RuleMatch } from "../rule.ts"
import { normalizePath } from "./path.ts"
import { compileValueList } from "./value-list.ts"

/** The accepted forms of `match.path`, for error messages. */
export const PATH_ACCEPTED =
  'a path that starts with "/": "/login", "/users/:id", "/files/*" for everything below, "/files/*rest/raw", "/files{/:version}"; with a "\\" before each literal character of :*?+!()[]{}'

/**
 * A rule's `match`, compiled once. Returns whether the rule applies to this request. `paths` contains the readings of
 * the request's target (`pathReadings`), and is empty without a target. `route` is the framework's route pattern, if
 * known.
 */
export type Matcher<Facts> = (
  facts: Facts,
  request: unknown,
  paths: readonly string[],
  route: string | undefined,
) => boolean

/**
 * Compiles `match`. `readerOf` returns the reader of a field, which returns the field's text, or undefined if the
 * field is missing. For "ip", the text is the canonical address. `hasMethod` tests the request's method. Throws a
 * TypeError if the path is not a valid pattern.
 */
export function compileMatch<Facts>(
  match: RuleMatch,
  readerOf: (field: string) => (facts: Facts, request: unknown) => string | undefined,
  hasMethod: (facts: Facts, methods: ReadonlySet<string>) => boolean,
): Matcher<Facts> {
  const methods = match.methods === undefined ? undefined : methodSet(match.methods)
  const path = match.path === undefined ? undefined : compilePath(match.path)
  const fields = Object.entries(match.fields ?? {}).map(([field, values]) => ({
    read: readerOf(field),
    isListed: compileValueList(field, values),
  }))
  return (facts, request, paths, route) => {
    if (methods !== undefined && !hasMethod(facts, methods)) return false
    if (path !== undefined && !path(paths, route)) return false
    return fields.every(({ read, isListed }) => {
      const text = read(facts, request)
      return text !== undefined && isListed(text)
    })
  }
}

/**
 * Compiles a path pattern into a test of normalized paths and of the framework's route. Throws a TypeError if the
 * pattern is invalid.
 *
 * The test covers at least the paths that Express, Koa and Fastify route to the same pattern. If the frameworks
 * differ, the test covers more, so that no spelling of a path bypasses a rule. "/files/*" also covers "/files".
 */
export function compilePath(
  pattern: string,
): (paths: readonly string[], route: string | undefined) => boolean {
  const tokens = pathTokens(pattern)
  const { regexp } = pathToRegexp(new TokenData(tokens, pattern))
  const shape = routeShape(pattern)
  return (paths, route) =>
    // A path with a trailing slash matches patterns both with and without a trailing slash.
    paths.some((path) => regexp.test(path === "/" ? path : `${path}/`)) ||
    (route !== undefined && routeShape(route) === shape)
}

/**
 * Returns a warning if a whole segment is "{id}", which is a parameter in other pattern languages. In Sluice it is
 * the optional text "id", so such a rule would limit no client.
 */
export function pathDoubt(pattern: string): string | undefined {
  const [, name] = /\/\{(\w+)\}(?=\/|$)/.exec(pattern) ?? []
  if (name === undefined) return undefined
  return `"{${name}}" is the optional text "${name}", not a parameter; did you mean ":${name}"?`
}

/** Returns the tokens of a pattern. The strings in the tokens are normalized like request paths. */
export function pathTokens(pattern: string): Token[] {
  return withOptionalRest(parse(namedRest(pattern)).tokens).map(normalizeText)
}

/** Returns the methods of a match in upper case, and adds HEAD if they include GET. */
export function methodSet(methods: readonly string[]): ReadonlySet<string> {
  const set = new Set(methods.map((method) => method.toUpperCase()))
  if (set.has("GET")) set.add("HEAD")
  return set
}

/** Adds a name to a "*" at the end of the pattern, because the parser requires one. */
function namedRest(pattern: string): string {
  return pattern.endsWith("/*") ? `${pattern}rest` : pattern
}

/**
 * Makes the rest optional, because frameworks differ in whether "/files/*" covers "/files/", which is normalized to
 * "/files".
 */
function withOptionalRest(tokens: readonly Token[]): Token[] {
  const rest = tokens.at(-1)
  const before = tokens.at(-2)
  if (rest?.type !== "wildcard" || before?.type !== "text" || !before.value.endsWith("/")) return [...tokens]
  const text: Token[] = before.value === "/" ? [] : [{ type: "text", value: before.value.slice(0, -1) }]
  return [...tokens.slice(0, -2), ...text, { type: "group", tokens: [{ type: "text", value: "/" }, rest] }]
}

/** Normalizes the strings of a token like request paths. */
function normalizeText(token: Token): Token {
  if (token.type === "group") return { type: "group", tokens: token.tokens.map(normalizeText) }
  if (token.type !== "text") return token
  // `normalizePath` is for whole paths, so restore the slashes that it adds or drops at the ends of a part.
  const first = token.value.startsWith("/") ? "" : "/"
  const path = normalizePath(token.value.replace(/[?#]/g, encodeURIComponent))
  const last = token.value.endsWith("/") && path !== "/" ? "/" : ""
  return { type: "text", value: path.slice(first.length) + last }
}

/**
 * Returns a route without the names and expressions of its parameters: "/users/:id(\\d+)" is "/users/:". The results
 * are cached in a limited cache, because a caller of the core may pass any number of routes.
 */
export const routeShape: (route: string) => string | undefined = remember((route) => {
  const unnamed = route.replace(/([:*])(?:\w+|"[^"]*")(?:\([^()]*\))?/g, "$1").replaceAll("(.*)", "*")
  return normalizePath(unnamed.replace(/[?#]/g, encodeURIComponent))
})

/**
 * Returns a warning if Node does not support the method, because a Node server then receives no such request. This is
 * not an error, because gateways and other versions of Node may use the same rules and support other methods.
 */
export function methodDoubt(method: string): string | undefined {
  if (METHODS.includes(method.toUpperCase())) return undefined
  return `${show(method)} is not an HTTP method that Node knows${suggestion(method, METHODS)}`
}
