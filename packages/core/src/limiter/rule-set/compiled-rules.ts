import type { Steps } from "../../ground/time.ts"
import type { ParsedRule } from "../../rules/parsing/parsed-rule.ts"
import { type CompiledRule, compileRule } from "./compiled-rule.ts"
import type { RuleContext } from "./rule-context.ts"
import { warnOfDoubts } from "./rule-doubts.ts"

/** The rules of a rule set, compiled. */
export class CompiledRules {
  readonly #rules: readonly ParsedRule[]
  readonly #context: RuleContext
  readonly #compiled: (CompiledRule | undefined)[]

  /**
   * Compiles the rules. With `isLazy`, most rules are compiled when a request first needs them, because requests need
   * only a few of thousands of rules. The first rule with a given field is compiled at once, because that may log a warning about the
   * field.
   */
  static *of(rules: readonly ParsedRule[], context: RuleContext, isLazy: boolean): Steps<CompiledRules> {
    const compiled = new CompiledRules(rules, context)
    const known = new Set<string>()
    for (const [position, rule] of rules.entries()) {
      warnOfDoubts(rule, context.warner)
      const fields = [...rule.fields, ...Object.keys(rule.match?.fields ?? {})]
      if (!isLazy || fields.some((field) => !known.has(field))) compiled.at(position)
      for (const field of fields) known.add(field)
      yield
    }
    return compiled
  }

  private constructor(rules: readonly ParsedRule[], context: RuleContext) {
    this.#rules = rules
    this.#context = context
    this.#compiled = rules.map(() => undefined)
  }

  /** Returns the rule at this position, and compiles it if necessary. */
  at(position: number): CompiledRule {
    const compiled = this.#compiled[position]
    if (compiled !== undefined) return compiled
    const made = compileRule(this.#rules[position] as ParsedRule, this.#context)
    this.#compiled[position] = made
    return made
  }
}
