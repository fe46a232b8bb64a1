import { createLimiter, InvalidRuleError, type Limiter } from "@sluice/core"
import {
  createRuleBook,
  fileRules,
  type LiveSource,
  liveRules,
  parseRuleDocument,
  type RuleBook,
  type RuleSource,
  readRuleDocument,
  staticRules,
} from "@sluice/rules"

const file: LiveSource = fileRules(new URL("file:///etc/sluice/rules.yaml"), { pollMs: 1_000 })
const own: RuleSource = {
  name: "our own source",
  pollMs: 5_000,
  load: async (service) => readRuleDocument({ service_id: service, rules: [] }),
}
const book: RuleBook = createRuleBook({ source: own, onRulesMissing: "deny" })

export const limiters: readonly Limiter[] = [
  createLimiter({ rules: file }),
  createLimiter({ rules: staticRules(parseRuleDocument({ rules: [] })) }),
  createLimiter({ rules: liveRules(own), onRulesMissing: "allow" }),
  createLimiter({ rules: book, service: "checkout" }),
]

book.on("rule-error", (error) => {
  if (error instanceof InvalidRuleError)
    for (const { path, message } of error.problems) console.log(path, message)
})

// @ts-expect-error a source of your own needs liveRules
createLimiter({ rules: own, onRulesMissing: "allow" })
// @ts-expect-error a misspelled option is not valid
fileRules("rules.yaml", { poll: 1_000 })
