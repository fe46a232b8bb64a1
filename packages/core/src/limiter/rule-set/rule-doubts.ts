import type { Warner } from "../../ground/warnings.ts"
import { methodDoubt, pathDoubt } from "../../rules/matching/match.ts"
import type { ParsedRule } from "../../rules/parsing/parsed-rule.ts"

/** Warns of what is right in a rule and hardly meant, once for each rule. */
export function warnOfDoubts(rule: ParsedRule, warner: Warner): void {
  if (rule.lacksUnit === true) warnOfUnit(rule, warner)
  warnOfMethod(rule, warner)
  warnOfPath(rule, warner)
}

/** Where windows are seconds in other rate limiters, a number taken over would be a limit that nobody ever meets. */
function warnOfUnit({ name, windowMs }: ParsedRule, warner: Warner): void {
  warner.once(
    "SLUICE_WINDOW_WITHOUT_UNIT",
    `The window of rule "${name}" is the number ${windowMs}, which is ${windowMs} milliseconds. ` +
      `Write "${windowMs} ms" if that is meant, "${windowMs} seconds" if not.`,
    name,
  )
}

/** A rule for a path that nobody asks for limits nobody. */
function warnOfPath({ name, match }: ParsedRule, warner: Warner): void {
  const doubt = pathDoubt(match?.path ?? "")
  if (doubt !== undefined) {
    warner.once("SLUICE_PATH_DOUBTFUL", `In match.path of rule "${name}", ${doubt}`, name)
  }
}

/** A rule for a method that nobody sends limits nobody. The first that is doubtful is enough to look at the others. */
function warnOfMethod({ name, match }: ParsedRule, warner: Warner): void {
  const doubt = match?.methods?.map(methodDoubt).find((each) => each !== undefined)
  if (doubt !== undefined) {
    warner.once("SLUICE_METHOD_UNKNOWN", `In match.methods of rule "${name}", ${doubt}`, name)
  }
}
