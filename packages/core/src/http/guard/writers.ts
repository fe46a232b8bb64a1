import type { Warner } from "../../ground/warnings.ts"
import type { ParsedOptions } from "../../limiter/options/parse-options.ts"
import type { RuleSet } from "../../limiter/rule-set/rule-set.ts"
import type { HeaderWriter } from "../headers/header-values.ts"
import { compileHeaders } from "../headers.ts"
import { compileRejection, type RejectionWriter } from "../rejection.ts"

/** The functions that write headers and rejections for decisions made on one rule set. */
export interface Writers {
  readonly headers: HeaderWriter
  readonly rejection: RejectionWriter
}

/** The members of a limiter that the writers need. */
export interface WritingLimiter {
  readonly options: Pick<ParsedOptions, "headers" | "rejection">
  readonly warner: Warner
}

/** Compiles the functions that write headers and rejections. */
export function compileWriters(ruleSet: RuleSet, { options, warner }: WritingLimiter): Writers {
  const { rules, link } = ruleSet
  const policies = rules.map(({ name, limit, counts, shadow, ...rule }) => {
    const windowMs = fixedWindowMs(rule)
    return { name, limit: typeof limit === "number" ? limit : undefined, windowMs, unit: counts, shadow }
  })
  return {
    headers: compileHeaders(options.headers, policies),
    rejection: compileRejection(
      rules.map(({ name, cost, rejectionMessage, rejection = options.rejection, ...rule }, position) => {
        const windowMs = fixedWindowMs(rule)
        const most = (limit: number): number => ruleSet.mostAdmitted(position, limit)
        return { name, windowMs, cost, rejectionMessage, rejection, most }
      }),
      warner,
      link,
    ),
  }
}

function fixedWindowMs({
  windowMs,
  windowOf,
  calendar,
}: Pick<RuleSet["rules"][number], "windowMs" | "windowOf" | "calendar">): number | undefined {
  return windowOf === undefined && calendar === undefined ? windowMs : undefined
}
