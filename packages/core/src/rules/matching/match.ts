import { METHODS } from "node:http"
import { parse, pathToRegexp, type Token, TokenData } from "path-to-regexp"
import { show, suggestion } from "../../ground/show.ts"
import type { RuleMatch } from "../rule.ts"
import { normalizePath } from "./path.ts"
import { compileValueList } from "./value-list.ts"

/** What a `match.path` may be, for error messages. */
export const PATH_ACCEPTED =
  'a path that starts with "/": "/login", "/users/:id", "/files/*" for all below, "/files/*rest/raw", "/files{/:version}"; with a "\\" before each of :*?+!()[]{} that is meant as it is'

/** A rule's `match`, compiled once. */
export interface Matcher {
  /** The fields whose values `matches` may ask for. */
  readonly fields: readonly string[]
  /**
   * Whether the rule is for this request. `paths` are the readings of its target (`pathReadings`), empty when it has
   * none; `route` is the framework's pattern where it is known; `fieldText` yields a field's text, of "ip" the canonical address,
   * undefined when it is missing.
   */
  matches(
    method: string | undefined,
    paths: readonly string[],
    route: string | undefined,
    fieldText: (field: string) => string | undefined,
  ): boolean
}

/** Compiles `match`. Throws a TypeError when its path is not a pattern, InvalidRuleError for a value of "ip" that is no address. */
export function compileMatch(match: RuleMatch = {}): Matcher {
  const methods = match.methods === undefined ? undefined : methodSet(match.methods)
  const path = match.path === undefined ? undefined : compilePath(match.path)
  const fields = Object.entries(match.fields ?? {}).map(([field, values]) => ({
    field,
    names: compileValueList(field, values),
  }))
  return {
    fields: fields.map(({ field }) => field),
    matches(method, paths, route, fieldText) {
      if (methods !== undefined && (method === undefined || !methods.has(method.toUpperCase()))) return false
      if (path !== undefined && !path(paths, route)) return false
      return fields.every(({ field, names }) => {
        const text = fieldText(field)
        return text !== undefined && names(text)
      })
    },
  }
}

/**
 * Compiles a path pattern to a test of normalized paths and of the framework's route. Throws a TypeError when it is
 * not a pattern.
 *
 * It covers at least what Express, Koa and Fastify route to the same pattern, and more where they differ, so that no
 * spelling of a path slips past a rule. "/files/*" covers "/files" too.
 */
export function compilePath(
  pattern: string,
): (paths: readonly string[], route: string | undefined) => boolean {
  const tokens = pathTokens(pattern)
  const { regexp } = pathToRegexp(new TokenData(tokens, pattern))
  const sameRoute = routeTest(pattern)
  return (paths, route) =>
    // Ending in a slash, a path meets a pattern with a last slash as well as one without.
    paths.some((path) => regexp.test(path === "/" ? path : `${path}/`)) ||
    (route !== undefined && sameRoute(route))
}

/**
 * What is doubtful in a path: "{id}" for a whole segment, which is how others write a parameter, and here the text "id", or nothing. A rule
 * for it limits nobody.
 */
export function pathDoubt(pattern: string): string | undefined {
  const [, name] = /\/\{(\w+)\}(?=\/|$)/.exec(pattern) ?? []
  if (name === undefined) return undefined
  return `"{${name}}" is the text "${name}" or nothing, and no parameter; did you mean ":${name}"?`
}

/** The tokens of a pattern, with their texts in the spelling that paths are brought to. */
export function pathTokens(pattern: string): Token[] {
  return withOptionalRest(parse(namedRest(pattern)).tokens).map(normalizeText)
}

/** The methods of a match in upper case, with HEAD beside GET. */
export function methodSet(methods: readonly string[]): ReadonlySet<string> {
  const set = new Set(methods.map((method) => method.toUpperCase()))
  if (set.has("GET")) set.add("HEAD")
  return set
}

/** A "*" that ends the pattern needs no name. */
function namedRest(pattern: string): string {
  return pattern.endsWith("/*") ? `${pattern}rest` : pattern
}

/** Frameworks differ in whether "/files/*" covers "/files/", which is "/files" here: make the rest optional. */
function withOptionalRest(tokens: readonly Token[]): Token[] {
  const rest = tokens.at(-1)
  const before = tokens.at(-2)
  if (rest?.type !== "wildcard" || before?.type !== "text" || !before.value.endsWith("/")) return [...tokens]
  const text: Token[] = before.value === "/" ? [] : [{ type: "text", value: before.value.slice(0, -1) }]
  return [...tokens.slice(0, -2), ...text, { type: "group", tokens: [{ type: "text", value: "/" }, rest] }]
}

/** The texts of a pattern in the spelling that paths are brought to. */
function normalizeText(token: Token): Token {
  if (token.type === "group") return { type: "group", tokens: token.tokens.map(normalizeText) }
  if (token.type !== "text") return token
  // normalizePath is for whole paths: what it adds or drops at the ends of a part is put back.
  const first = token.value.startsWith("/") ? "" : "/"
  const path = normalizePath(token.value.replace(/[?#]/g, encodeURIComponent))
  const last = token.value.endsWith("/") && path !== "/" ? "/" : ""
  return { type: "text", value: path.slice(first.length) + last }
}

/** Routes that a test remembers. Frameworks have a fixed set; a caller of the core might pass anything. */
const MAX_ROUTES = 1_000

function routeTest(pattern: string): (route: string) => boolean {
  const shape = routeShape(pattern)
  const known = new Map<string, boolean>()
  return (route) => {
    let same = known.get(route)
    if (same === undefined) {
      same = routeShape(route) === shape
      if (known.size >= MAX_ROUTES) known.clear()
      known.set(route, same)
    }
    return same
  }
}

/** A route without the names of its parameters and their expressions: "/users/:id(\\d+)" is "/users/:". */
export function routeShape(route: string): string {
  const unnamed = route.replace(/([:*])(?:\w+|"[^"]*")(?:\([^()]*\))?/g, "$1").replaceAll("(.*)", "*")
  return normalizePath(unnamed.replace(/[?#]/g, encodeURIComponent))
}

/**
 * Returns a warning if Node does not know the method, because then no server on it gets such a request. This is not an error:
 * rules are shared with gateways and with other versions of Node, which know other methods.
 */
export function methodDoubt(method: string): string | undefined {
  if (METHODS.includes(method.toUpperCase())) return undefined
  return `${show(method)} is no method that Node knows${suggestion(method, METHODS)}`
}
