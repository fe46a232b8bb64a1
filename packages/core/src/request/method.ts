import { ownValue, queryValues } from "./field.ts"
import type { RequestFacts } from "./request.ts"

/** The headers in which clients name the method that a POST stands for. */
const OVERRIDES = ["x-http-method-override", "x-http-method", "x-method-override"]

/**
 * True if the app might handle the request by one of these methods, which are in upper case. A method override may run
 * before or after the limiter, and the limiter does not know whether there is one. So a request counts as each method
 * that it names, and as POST if it names any. A GET or HEAD is not searched for names, because overrides change a POST.
 */
export function hasMethod(facts: RequestFacts, methods: ReadonlySet<string>): boolean {
  const { method, originalMethod } = facts
  if (isAmong(methods, method) || isAmong(methods, originalMethod)) return true
  if (method === undefined || method === "GET" || method === "HEAD") return false
  const { headers, url, body } = facts
  const named = [
    ...OVERRIDES.map((name) => headers?.[name]),
    queryValues(url, "_method"),
    ownValue(body, "_method"),
  ]
    .flat()
    .flatMap((name) => (typeof name === "string" ? name.split(",") : []))
  return named.some((name) => isAmong(methods, name.trim())) || (named.length > 0 && methods.has("POST"))
}

function isAmong(methods: ReadonlySet<string>, name: unknown): boolean {
  return typeof name === "string" && methods.has(name.toUpperCase())
}
