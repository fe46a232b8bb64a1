import type { Warner } from "../../ground/warnings.ts"
import { methodDoubt, pathDoubt } from "../../rules/matching/match.ts"
import type { ParsedRule } from "../../rules/parsing/parsed-rule.ts"

/** Logs a warning about parts of a rule that are valid but probably a mistake, once per rule. */
export function warnOfDoubts(rule: ParsedRule, warner: Warner): void {
  if (rule.lacksUnit === true) warnOfUnit(rule, warner)
  warnOfMethod(rule, warner)
  warnOfPath(rule, warner)
}

/**
 * Warns of a window without a unit. Other rate limiters use seconds, so a copied number would make a window far too
 * short and the limit ineffective.
 */
function warnOfUnit({ name, windowMs }: ParsedRule, warner: Warner): void {
  warner.once(
    "SLUICE_WINDOW_WITHOUT_UNIT",
    `The window of rule "${name}" is the number ${windowMs}, which means ${windowMs} milliseconds. ` +
      `Write "${windowMs} seconds", or "${windowMs} ms" if you mean milliseconds.`,
    name,
  )
}

/** Warns of a path that no request has, because such a rule would limit nothing. */
function warnOfPath({ name, match }: ParsedRule, warner: Warner): void {
  const doubt = pathDoubt(match?.path ?? "")
  if (doubt !== undefined) {
    warner.once("SLUICE_PATH_DOUBTFUL", `In match.path of rule "${name}", ${doubt}`, name)
  }
}

/** Warns of a method that no client sends, because such a rule would limit nothing. Reports only the first one. */
function warnOfMethod({ name, match }: ParsedRule, warner: Warner): void {
  const doubt = match?.methods?.map(methodDoubt).find((each) => each !== undefined)
  if (doubt !== undefined) {
    warner.once("SLUICE_METHOD_UNKNOWN", `In match.methods of rule "${name}", ${doubt}`, name)
  }
}
