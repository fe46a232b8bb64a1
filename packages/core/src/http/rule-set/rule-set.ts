import { type Ask, RULES_MISSING } from "../../limiter/ask.ts"
import type { ParsedRule } from "../../rules/parsed-rule.ts"
import { pathReadings } from "../../rules/path.ts"
import type { CounterKey } from "../../stores/store.ts"
import type { HeaderWriter } from "../headers/writer.ts"
import { compileHeaders, type HeaderDialect } from "../headers.ts"
import { compileRejection, type RejectionWriter } from "../rejection.ts"
import type { RequestFacts } from "../request.ts"
import { type CompiledRule, compileRule, type RuleContext } from "./compiled-rule.ts"
import { needsMonitor } from "./elastic.ts"
import { mostAdmitted } from "./most-admitted.ts"
import { ALL_STEPS, NO_STEPS, type StepSet } from "./steps.ts"

/** The rules that are in force at one moment, compiled. A decision in flight finishes on the set it began with. */
export interface RuleSet {
  readonly names: readonly string[]
  /** The steps at which its rules can be decided. */
  readonly steps: StepSet
  /** The steps of those rules that have requests wait. */
  readonly holding: StepSet
  /** Whether a rule goes by the spare capacity of this process, which somebody has to watch then. */
  readonly needsMonitor: boolean
  /** What the request has to ask, `units` of each rule that is for it and is decided at one of the steps. */
  asks(facts: RequestFacts, request: unknown, units: number, steps: StepSet): readonly Ask[]
  /**
   * The counters of the client behind the request: of the rules named, else of all but those that count the whole
   * service. Rules that are not for this very request too: who resets a client may know no more than its address.
   */
  counters(facts: RequestFacts, request: unknown, names: readonly string[] | undefined): CounterKey[]
  readonly writeHeaders: HeaderWriter
  readonly writeRejection: RejectionWriter
}

const NO_PATHS: readonly string[] = []
const NO_ASKS: readonly Ask[] = []

export function compileRuleSet(
  rules: readonly ParsedRule[],
  context: RuleContext,
  dialect: HeaderDialect | false,
): RuleSet {
  const compiled = rules.map((rule) => compileRule(rule, context))
  const needsPath = compiled.some((rule) => rule.needsPath)
  const pathsOf = (facts: RequestFacts): readonly string[] => (needsPath ? pathsIn(facts) : NO_PATHS)

  return {
    names: rules.map(({ name }) => name),
    steps: union(compiled),
    holding: union(compiled.filter(({ rule: { throttle, shadow } }) => throttle.kind === "queue" && !shadow)),
    needsMonitor: rules.some(needsMonitor),
    asks(facts, request, units, steps) {
      const paths = pathsOf(facts)
      let asks: Ask[] | undefined
      for (let i = 0; i < compiled.length; i++) {
        const rule = compiled[i] as CompiledRule
        if ((rule.step & steps) === NO_STEPS) continue
        const ask = rule.ask(facts, request, units, paths)
        if (ask === undefined) continue
        // Nearly always there is one, and a list that grows makes room for seventeen.
        if (asks === undefined) asks = [ask]
        else asks.push(ask)
      }
      return asks ?? NO_ASKS
    },
    counters(facts, request, names) {
      return compiled
        .filter(({ rule }) => (names === undefined ? rule.fields.length > 0 : names.includes(rule.name)))
        .flatMap((rule) => rule.counters(facts, request))
    },
    writeHeaders: dialect === false ? () => [] : compileHeaders(dialect, rules.map(headerPolicy)),
    writeRejection: compileRejection(
      rules.map((rule) => ({ ...rule, most: (limit) => mostAdmitted(rule, limit) })),
    ),
  }
}

/** Returns the rule set of a limiter that refuses every request, because no rules have been loaded yet. */
export function denyingRuleSet(context: RuleContext, dialect: HeaderDialect | false): RuleSet {
  return { ...compileRuleSet([], context, dialect), steps: ALL_STEPS, asks: () => RULES_MISSING }
}

/** The readings of the target as it came, and as the app has it routed. A caller of the core might pass anything. */
function pathsIn({ url, routedUrl }: RequestFacts): readonly string[] {
  const paths = typeof url === "string" ? pathReadings(url) : NO_PATHS
  if (typeof routedUrl !== "string") return paths
  // Stryker disable next-line ConditionalExpression: the same readings once more
  return routedUrl === url ? paths : [...paths, ...pathReadings(routedUrl)]
}

function headerPolicy({ name, limit, windowMs, shadow }: ParsedRule) {
  // Stryker disable next-line ConditionalExpression,StringLiteral: an unknown limit is written from each decision, the same
  return { name, limit: typeof limit === "number" ? limit : undefined, windowMs, shadow }
}

function union(rules: readonly CompiledRule[]): StepSet {
  return rules.reduce((steps, rule) => steps | rule.step, NO_STEPS)
}
