import { remember } from "../../ground/address.ts"
import { textOf } from "../../ground/errors.ts"
import { compileField } from "../../request/field.ts"
import type { FieldReader } from "../../request/request.ts"
import type { ParsedRule } from "../../rules/rule.ts"
import type { CallbackResults } from "../callbacks/callback-results.ts"
import { bareNameRemedy } from "./field-watch.ts"
import type { RuleContext } from "./rule-context.ts"

/** Returns a function that returns the reader of a field. Each reader is compiled only once. */
export function rememberedReaders(rule: ParsedRule, context: RuleContext): (field: string) => FieldReader {
  const { warner, clientGroup, extractorNames } = context
  const compile = (name: string): FieldReader => {
    const own = context.fieldOf(name)
    if (own !== undefined) return (_facts, results) => (results as CallbackResults).resultOf(own)
    return compileField(name, {
      clientGroup,
      matchedPath: rule.match?.path,
      onClientChosen: () => {
        warner.once(
          "SLUICE_CLIENT_CHOSEN_FIELD",
          `Rule "${rule.name}" uses "${name}", which is read from the request, so clients can choose its value. ` +
            bareNameRemedy(name, extractorNames),
          name,
        )
      },
      onBodyMissing: () =>
        warner.once(
          "SLUICE_BODY_NOT_PARSED",
          `Rule "${rule.name}" counts by "${name}", but no body parser has run before the limiter. ` +
            "Mount the body parser before the limiter. Until then, the rule's onMissing decides.",
          name,
        ),
      onRouteMissing: () =>
        warner.once(
          "SLUICE_ROUTE_UNKNOWN",
          `Rule "${rule.name}" counts by "route", but the framework does not know the route where the limiter is ` +
            "mounted. Mount the limiter on the route, or give the rule a match.path.",
          rule.name,
        ),
      onExtractorFailed: (_name, error) =>
        warner.once(
          "SLUICE_EXTRACTOR_FAILED",
          `Reading field "${name}" for rule "${rule.name}" failed: ${textOf(error)}. The field counts as missing.`,
          name,
          error,
        ),
    })
  }
  return remember(compile) as (field: string) => FieldReader
}
