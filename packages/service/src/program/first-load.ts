import { InvalidRuleError } from "@sluice/core"
import type { RuleBook, RuleBookEvents } from "@sluice/rules"
import type { Log } from "./log.ts"

/**
 * Watches a book's first load. Returns a function that stops watching and logs one line with the number of services
 * whose rules are all invalid. The book logs each such service, but thousands of lines are hard to count.
 */
export function followFirstLoad(book: RuleBook, log: Log): () => void {
  const right = new Set<string>()
  const wrong = new Map<string, InvalidRuleError>()
  const onRules = ({ service }: RuleBookEvents["rules"][0]): void => {
    wrong.delete(service)
    right.add(service)
  }
  const onError = (...[error, service]: RuleBookEvents["rule-error"]): void => {
    if (service !== undefined && error instanceof InvalidRuleError) wrong.set(service, error)
  }
  book.on("rules", onRules)
  book.on("rule-error", onError)
  return () => {
    book.off("rules", onRules)
    book.off("rule-error", onError)
    const [first] = wrong
    if (first === undefined) return
    const [example, err] = first
    log.error(
      { wrong: wrong.size, services: wrong.size + right.size, example, err },
      "Some services have no rules in force, because their stored rules are invalid. Correct the rules.",
    )
  }
}
