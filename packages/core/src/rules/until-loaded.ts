import * as v from "valibot"
import type { Problem } from "../ground/errors.ts"
import { type Schema, says } from "../ground/shape.ts"
import type { LiveRules, OnRulesMissing, UntilLoaded } from "./live-rules.ts"
import { type ParsedRules, parseCodeRules } from "./parsing/parse-rule.ts"
import type { Rule } from "./rule.ts"

/** The options that define the behavior until the first load, as given. */
export interface UntilLoadedOptions {
  /** Rules that apply until the first load. */
  readonly defaultRules?: readonly Rule[] | undefined
  /** Whether requests are admitted until the first load. */
  readonly onRulesMissing?: OnRulesMissing | undefined
}

/** The schema of `onRulesMissing`. */
export const onRulesMissing: Schema = v.optional(
  v.picklist(["allow", "deny"], says("a valid value", '"allow" or "deny"')),
)

/**
 * Returns the behavior until the first load; undefined if the options do not define it. Adds the problems of these
 * options to `problems`.
 */
export function parseUntilLoaded(
  { defaultRules, onRulesMissing: choice }: UntilLoadedOptions,
  problems: Problem[],
): UntilLoaded | undefined {
  if (defaultRules === undefined) {
    return choice === undefined ? undefined : { defaultRules: [], onRulesMissing: choice }
  }
  if (choice !== undefined) {
    const accepted = `either defaultRules, or onRulesMissing: ${JSON.stringify(choice)}`
    problems.push({ path: "onRulesMissing", message: "is given together with defaultRules", accepted })
  }
  const parsed: ParsedRules = parseCodeRules(defaultRules, "defaultRules")
  problems.push(...parsed.problems)
  return { defaultRules: parsed.rules, onRulesMissing: "allow" }
}

/**
 * Returns the problem of a limiter on a network source whose options do not define what applies until rules are loaded.
 */
export function undecided({ name = "this source" }: Pick<LiveRules, "name">): Problem {
  return {
    path: "onRulesMissing",
    message: `is missing: the rules of ${name} are loaded after the limiter is created, so choose what applies until the first load succeeds`,
    accepted:
      'onRulesMissing: "allow" to admit every request, onRulesMissing: "deny" to respond with 503, or defaultRules: […] to apply other rules',
  }
}
