import { inspect } from "node:util"
import { InvalidOptionError } from "../ground/errors.ts"
import { HEADER_DIALECTS, type HeaderDialect } from "../limiter/options/answer-options.ts"
import type { HeaderPolicy, HeaderWriter } from "./headers/header-values.ts"
import { compileMembers } from "./headers/members.ts"
import { compileSingleValues, fromNow, sinceEpoch } from "./headers/single-values.ts"

interface Dialect {
  readonly compile: (policies: readonly HeaderPolicy[]) => HeaderWriter
  readonly fields: readonly string[]
}

// `next` also defines RateLimit-Partition, which names the counted client. It is left out, because a decision has
// nothing that could stand for a client without revealing its identity.
const DIALECTS: Readonly<Record<HeaderDialect, Dialect>> = {
  "draft-11": {
    compile: (policies) => compileMembers(policies, { remaining: "r", seconds: "t", cost: undefined }),
    fields: ["RateLimit-Policy", "RateLimit"],
  },
  next: {
    compile: (policies) => compileMembers(policies, { remaining: "a", seconds: "w", cost: "c" }),
    fields: ["RateLimit-Policy", "RateLimit"],
  },
  triple: {
    compile: (policies) => compileSingleValues(policies, TRIPLE, fromNow),
    fields: ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Policy"],
  },
  legacy: {
    compile: (policies) => compileSingleValues(policies, LEGACY, sinceEpoch),
    fields: ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"],
  },
}

const TRIPLE = {
  limit: "RateLimit-Limit",
  remaining: "RateLimit-Remaining",
  reset: "RateLimit-Reset",
  policy: "RateLimit-Policy",
}

const LEGACY = {
  limit: "X-RateLimit-Limit",
  remaining: "X-RateLimit-Remaining",
  reset: "X-RateLimit-Reset",
  policy: undefined,
}

/**
 * Returns a function that writes a decision's rate limit headers in one dialect. It only knows the rules given here:
 * compile again when they change. Throws when a name is not printable ASCII.
 *
 * With `draft-11`, limit 100 in a minute and 50 left: `RateLimit-Policy: "ip-1m";q=100;w=60` and
 * `RateLimit: "ip-1m";r=50;t=30`.
 */
export function compileHeaders(dialect: HeaderDialect, policies: readonly HeaderPolicy[]): HeaderWriter {
  return DIALECTS[dialect].compile(policies)
}

/**
 * Returns the fields that a script on another origin can read only if Access-Control-Expose-Headers lists them. For
 * "draft-11" they are `RateLimit-Policy`, `RateLimit` and `Retry-After`.
 * @throws {@link InvalidOptionError} for an unknown dialect
 */
export function exposedHeaders(dialect: HeaderDialect | false): readonly string[] {
  if (dialect !== false && !HEADER_DIALECTS.includes(dialect)) {
    const accepted = `${HEADER_DIALECTS.map((name) => `"${name}"`).join(", ")} or false`
    const message = `${inspect(dialect)} is not a header dialect`
    throw new InvalidOptionError([{ path: "headers", message, accepted }])
  }
  return dialect === false ? ["Retry-After"] : [...DIALECTS[dialect].fields, "Retry-After"]
}
