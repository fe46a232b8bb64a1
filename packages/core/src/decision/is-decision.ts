import { InvalidOptionError } from "../ground/errors.ts"
import { classOf, show } from "../ground/show.ts"
import type { Decision } from "./decision.ts"

/**
 * True if the value looks like a decision or a copy of one. An app without type checks may pass a promise, a request or
 * the result of another rate limiter instead.
 */
export function isDecision(value: unknown): value is Decision {
  const { allowed, cost, checks } = (value ?? {}) as { readonly [Name in keyof Decision]?: unknown }
  return typeof allowed === "boolean" && (Array.isArray(checks) || (cost as number) > 0)
}

/** Throws InvalidOptionError for a value that is not a decision. */
export function throwNotADecision(value: unknown): never {
  const isObject = typeof value === "object" && value !== null
  // Do not show the value as JSON, because it may be a request, whose headers must not be logged.
  const given = isObject ? (classOf(value) ?? "an object") : show(value)
  throw new InvalidOptionError([
    {
      path: "decision",
      message: value === undefined ? "is missing" : `${given} is not a decision`,
      accepted:
        "the awaited result of decide() or a similar call, or the decision that an adapter put on the request",
    },
  ])
}
