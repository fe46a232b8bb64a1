import type { Problem } from "../../ground/errors.ts"
import { classOf } from "../../ground/show.ts"

/** Nothing, or somebody else's object, such as the request that a middleware is given which nobody has called. */
export function isForeign(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return value === undefined
  const prototype: unknown = Object.getPrototypeOf(value)
  // An app may well have a class of options of its own.
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null || Array.isArray(value)
  return !isPlain && !["limit", "window", "rules"].some((name) => name in value)
}

/** What is told of it, without what is in it. */
export function notOptions(value: unknown): Problem {
  const accepted = 'an object such as { limit: 100, window: "1 minute" }'
  if (value === undefined) return { path: "", message: "there are none", accepted }
  const hint = "; what is mounted is what rateLimit(options) yields, not rateLimit itself"
  // Not as JSON: it may be a request, whose headers have no place in a log.
  return {
    path: "",
    message: `${classOf(value) ?? "an object"} is not the options`,
    accepted: `${accepted}${hint}`,
  }
}
