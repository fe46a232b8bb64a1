import { InvalidRuleError, type RuleBook, type RuleBookEvents } from "@sluice/core"
import type { Log } from "./log.ts"

/**
 * Listens to a book's first load. The function that it yields ends that and logs, in one line, of how many services no rule is
 * in force because all of theirs are wrong: each has a line of its own, and among thousands nobody counts them.
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
      "services have no rules in force: what is stored for them is wrong",
    )
  }
}
