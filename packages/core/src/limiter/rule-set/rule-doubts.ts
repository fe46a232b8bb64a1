import type { Warner } from "../../ground/warnings.ts"
import { methodDoubt, pathDoubt } from "../../rules/matching/match.ts"
import type { ParsedRule } from "../../rules/rule.ts"

/** Logs a warning, once per rule, about each member that is valid but probably a mistake. */
export function warnOfDoubts(
  { name, windowMs, lacksUnit, lacksField, match }: ParsedRule,
  warner: Warner,
): void {
  // An inline rule without a field counts by address, so the author of a stored rule may expect that, too.
  if (lacksField === true) {
    warner.once(
      "SLUICE_RULE_WITHOUT_FIELD",
      `Rule "${name}" has no field, so all requests of the service share its limit. Write field: "ip" to limit each client ` +
        'address, or field: "service" if all should share it.',
      name,
    )
  }
  if (lacksUnit === true) warnOfUnit(name, windowMs, warner)
  // A rule for a method or a path that no request has would limit nothing. Only the first method is reported.
  const method = match?.methods?.map(methodDoubt).find((each) => each !== undefined)
  if (method !== undefined) {
    warner.once("SLUICE_METHOD_UNKNOWN", `In match.methods of rule "${name}", ${method}`, name)
  }
  const path = pathDoubt(match?.path ?? "")
  if (path !== undefined) {
    warner.once("SLUICE_PATH_DOUBTFUL", `In match.path of rule "${name}", ${path}`, name)
  }
}

/**
 * Logs a warning, once per rule, if a window that was given as a number is below 1,000. Other rate limiters use
 * seconds, so a copied number would make a window far too short and the limit ineffective.
 */
export function warnOfUnit(name: string, windowMs: number, warner: Warner): void {
  if (windowMs >= 1_000 || warner.has("SLUICE_WINDOW_WITHOUT_UNIT", name)) return
  warner.once(
    "SLUICE_WINDOW_WITHOUT_UNIT",
    `The window of rule "${name}" is the number ${windowMs}, which means ${windowMs} milliseconds. ` +
      `Write "${windowMs} seconds", or "${windowMs} ms" if you mean milliseconds.`,
    name,
  )
}
