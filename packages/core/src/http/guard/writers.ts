import type { HeaderDialect } from "../../limiter/options/answer-options.ts"
import type { RuleSet } from "../../limiter/rule-set/rule-set.ts"
import type { HeaderWriter } from "../headers/header-values.ts"
import { compileHeaders } from "../headers.ts"
import { compileRejection, type RejectionWriter } from "../rejection.ts"

/** The functions that write headers and rejections for decisions made on one rule set. */
export interface Writers {
  readonly headers: HeaderWriter
  readonly rejection: RejectionWriter
}

const WRITERS = new WeakMap<RuleSet, Writers>()

/** Returns the writers of a rule set. Creates them, for this dialect, when the rule set is first used. */
export function writersOf(ruleSet: RuleSet, dialect: HeaderDialect | false): Writers {
  let writers = WRITERS.get(ruleSet)
  if (writers === undefined) {
    writers = compileWriters(ruleSet, dialect)
    WRITERS.set(ruleSet, writers)
  }
  return writers
}

function compileWriters(ruleSet: RuleSet, dialect: HeaderDialect | false): Writers {
  const { rules, link } = ruleSet
  const policies = rules.map(({ name, limit, windowMs, shadow }) => {
    return { name, limit: typeof limit === "number" ? limit : undefined, windowMs, shadow }
  })
  return {
    headers: dialect === false ? () => [] : compileHeaders(dialect, policies),
    rejection: compileRejection(
      rules.map(({ name, windowMs, cost, rejectionMessage }, position) => {
        const most = (limit: number): number => ruleSet.mostAdmitted(position, limit)
        return { name, windowMs, cost, rejectionMessage, most }
      }),
      link,
    ),
  }
}
