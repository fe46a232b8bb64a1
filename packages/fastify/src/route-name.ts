import { createHash } from "node:crypto"
import { inspect } from "node:util"
import type { RouteOptions } from "fastify"

/** Characters that a rule's name may not have. */
const FORBIDDEN = /[^ !#-[\]-~]/gu
const LONGEST_NAME = 64

/**
 * What tells a route from all others: "GET,POST /users/:id", with its constraints if it has any. HEAD is GET, so that
 * the HEAD route that Fastify makes of a GET route is the same route here.
 */
export function routeLabel({ method, url, constraints = {} }: RouteOptions): string {
  const methods = [method].flat().map((name) => (name === "HEAD" ? "GET" : name))
  const label = `${[...new Set(methods)].sort().join(",")} ${url}`
  if (Object.keys(constraints).length === 0) return label
  return `${label} ${inspect(constraints, { sorted: true, breakLength: Number.POSITIVE_INFINITY })}`
}

/**
 * A text as the name of a rule: as it is where it may be one, else what is left of it and 48 bits of its hash, so that
 * no two texts have one name.
 */
export function ruleName(text: string): string {
  const plain = text.replace(FORBIDDEN, "?")
  if (plain === text && text.length <= LONGEST_NAME) return text
  const digest = createHash("sha256").update(text).digest("base64url").slice(0, 8)
  return `${plain.slice(0, LONGEST_NAME - 9)}~${digest}`
}
