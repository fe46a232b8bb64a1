import { type Problem, RuleSourceError } from "../../ground/errors.ts"
import { show } from "../../ground/show.ts"
import { ignore } from "../../ground/time.ts"
import type { LoadedRules } from "../source.ts"

/**
 * Returns what a source that others wrote has loaded. Throws RuleSourceError if it has another shape. `call` and `name` are what
 * the message calls the method and the source.
 */
export function requireLoaded<Loaded extends LoadedRules>(value: Loaded, call: string, name: string): Loaded {
  const { rules, problems }: Partial<LoadedRules> = value ?? {}
  // Rules that are not a list are a problem of the edition, which the parser reports.
  if (rules !== undefined && Array.isArray(problems) && problems.every(isProblem)) return value
  if (value instanceof Promise) {
    value.catch(ignore)
    throw new RuleSourceError(
      `${call} of ${name} must return at once, and returned a promise: leave it out if it cannot`,
    )
  }
  throw new RuleSourceError(
    `${call} of ${name} must return { rules, problems }, a list of rules and a list of problems, and returned ${show(value)}`,
  )
}

function isProblem(value: unknown): boolean {
  const { path, message }: Partial<Problem> = value ?? {}
  return typeof path === "string" && typeof message === "string"
}
