import { RULES_MISSING, type RuleCheck } from "../../decision/rule-check.ts"
import { queueOf } from "../../ground/policy.ts"
import { isWorker } from "../../ground/runtime.ts"
import { atOnce, type Pausable } from "../../ground/slices.ts"
import { hasMethod } from "../../request/method.ts"
import type { RequestFacts } from "../../request/request.ts"
import { pathReadings } from "../../rules/matching/path.ts"
import { mostAdmitted } from "../../rules/parsing/most-admitted.ts"
import type { ParsedRule } from "../../rules/rule.ts"
import type { CounterKey } from "../../stores/store.ts"
import type { CallbackResults } from "../callbacks/callback-results.ts"
import type { Mismatch } from "../interface/rule-explanation.ts"
import { fitWorker } from "../options/worker-rules.ts"
import { type CompiledRule, compileRule, isPreflight, stepOfRule } from "./compiled-rule.ts"
import { needsMonitor } from "./elastic.ts"
import { text } from "./mismatch.ts"
import type { RuleContext } from "./rule-context.ts"
import { warnOfDoubts } from "./rule-doubts.ts"
import { RuleIndex } from "./rule-index.ts"
import { ALL_STEPS, NO_STEPS, type StepSet } from "./steps.ts"

/** The compiled rules in force at one moment. A decision in flight finishes with the rule set with which it began. */
export interface RuleSet {
  readonly rules: readonly ParsedRule[]
  /** Returns the maximum number of units that the rule at a position admits in one burst under this limit. */
  mostAdmitted(position: number, limit: number): number
  readonly names: readonly string[]
  /**
   * The URL of a page about the limits, which is sent to refused clients. Undefined if the service has no such page.
   */
  readonly link: string | undefined
  /** The steps at which the rules can be decided. */
  readonly steps: StepSet
  /** The steps of the rules that hold requests. */
  readonly holding: StepSet
  /** True if a rule needs this process's spare-capacity monitor. */
  readonly needsMonitor: boolean
  /**
   * Returns the checks of a request, one for each rule that applies and is decided at one of the steps. `requests` is
   * the number of requests that it counts as.
   */
  ruleChecks(
    facts: RequestFacts,
    results: CallbackResults,
    requests: number,
    steps: StepSet,
  ): readonly RuleCheck[]
  /**
   * Returns the request's checks under the named rules. Without names, includes all rules except rules for the whole
   * service. Includes rules whose `match` does not apply to this request. Always checks for blocks.
   */
  checksBy(
    facts: RequestFacts,
    results: CallbackResults,
    requests: number,
    names: readonly string[] | undefined,
  ): readonly RuleCheck[]
  /**
   * Returns the counters of the request's client under the named rules. Without names, includes all rules except
   * rules for the whole service. Includes rules that do not apply to this request, because a caller that resets a
   * client may know only the client's address.
   */
  counters(facts: RequestFacts, results: CallbackResults, names: readonly string[] | undefined): CounterKey[]
  /** Returns the compiled rule at a position. */
  compiled(position: number): CompiledRule
  /**
   * Returns the reasons why the rule at a position has no check in `ruleChecks`, or in `checksBy` if `readsMatch` is
   * false. Returns an empty array if the rule has a check.
   */
  mismatches(
    position: number,
    facts: RequestFacts,
    results: CallbackResults,
    readsMatch: boolean,
  ): readonly Mismatch[]
}

const NO_PATHS: readonly string[] = []
const NO_ASKS: readonly RuleCheck[] = []

/** Compiles rules, and pauses after about every rule. */
export function* compileRuleSet(
  given: readonly ParsedRule[],
  { fieldOf, ...others }: RuleContext,
  link?: string,
): Pausable<RuleSet> {
  const context = { ...others, fieldOf: remembered(fieldOf) }
  const rules = isWorker() ? given.map((rule) => fitWorker(rule, context.warner)) : given
  const steps: StepSet[] = []
  for (const rule of rules) {
    steps.push(stepOfRule(rule, context))
    yield
  }
  const index = yield* RuleIndex.of(rules, steps)
  const compiled: CompiledRule[] = []
  const at = (position: number): CompiledRule => {
    compiled[position] ??= compileRule(rules[position] as ParsedRule, context)
    return compiled[position]
  }
  const known = new Set<string>()
  for (const [position, rule] of rules.entries()) {
    warnOfDoubts(rule, context.warner)
    const fields = [...rule.fields, ...Object.keys(rule.match?.fields ?? {})]
    // With an index, requests need only a few of thousands of rules, so most rules are compiled when a request first
    // needs them. The first rule with a field is compiled immediately, because compiling it may log a warning about
    // the field.
    if (index === undefined || fields.some((field) => !known.has(field))) at(position)
    for (const field of fields) known.add(field)
    yield
  }
  const needsPath = rules.some(({ match }) => match?.path !== undefined)

  const stepsOf = (isMeant: (rule: ParsedRule) => boolean): StepSet =>
    steps.reduce(
      (all, step, position) => (isMeant(rules[position] as ParsedRule) ? all | step : all),
      NO_STEPS,
    )

  return {
    rules,
    mostAdmitted: (position, limit) => mostAdmitted(rules[position] as ParsedRule, limit),
    names: rules.map(({ name }) => name),
    link,
    steps: stepsOf(() => true),
    holding: stepsOf(({ throttle, shadow }) => queueOf(throttle) !== undefined && !shadow),
    needsMonitor: rules.some(needsMonitor),
    ruleChecks(facts, results, requests, atSteps) {
      const paths = needsPath ? pathsIn(facts) : NO_PATHS
      const rules = index === undefined ? compiled : candidates(index, at, facts, results, paths, atSteps)
      return checksOf(rules, facts, results, requests, paths, atSteps)
    },
    checksBy(facts, results, requests, names) {
      return rules.flatMap((rule, position) =>
        isMeant(rule, names) ? (at(position).checkAnyway(facts, results, requests) ?? []) : [],
      )
    },
    counters: (facts, results, names) =>
      rules.flatMap((rule, position) => (isMeant(rule, names) ? at(position).counters(facts, results) : [])),
    compiled: at,
    mismatches(position, facts, results, readsMatch) {
      return at(position).mismatches(facts, results, needsPath ? pathsIn(facts) : NO_PATHS, readsMatch)
    },
  }
}

/** Returns the rule set of a limiter that refuses every request, because no rules have been loaded yet. */
export function denyingRuleSet(context: RuleContext): RuleSet {
  return { ...atOnce(compileRuleSet([], context)), steps: ALL_STEPS, ruleChecks: () => RULES_MISSING }
}

function checksOf(
  rules: readonly CompiledRule[],
  facts: RequestFacts,
  results: CallbackResults,
  requests: number,
  paths: readonly string[],
  steps: StepSet,
): readonly RuleCheck[] {
  let ruleChecks: RuleCheck[] | undefined
  for (let i = 0; i < rules.length; i++) {
    const rule = rules[i] as CompiledRule
    if ((rule.step & steps) === NO_STEPS) continue
    const ruleCheck = rule.ruleCheck(facts, results, requests, paths)
    if (ruleCheck === undefined) continue
    // There is nearly always one check, and pushing onto an empty array would allocate space for seventeen.
    if (ruleChecks === undefined) ruleChecks = [ruleCheck]
    else ruleChecks.push(ruleCheck)
  }
  return ruleChecks ?? NO_ASKS
}

/** True if the rule is among the names. Without names, true if the rule does not count the whole service. */
export function isMeant({ name, fields }: ParsedRule, names: readonly string[] | undefined): boolean {
  return names?.includes(name) ?? fields.length > 0
}

/** Returns the rules that may apply to the request. This code is a separate function, because it needs closures. */
function candidates(
  index: RuleIndex,
  at: (position: number) => CompiledRule,
  facts: RequestFacts,
  results: CallbackResults,
  paths: readonly string[],
  steps: StepSet,
): readonly CompiledRule[] {
  const positions = index.candidates({
    hasMethod: (methods) => hasMethod(facts, methods),
    paths,
    route: text(facts.route),
    isPreflight: isPreflight(facts),
    steps,
    fieldText: (position, field) => at(position).matchedText(field, facts, results),
  })
  return positions.map(at)
}

/** Returns the function with a cache, so that the app's function is called once for each field. */
function remembered<T>(read: (name: string) => T): (name: string) => T {
  const results = new Map<string, T>()
  return (name) => {
    if (!results.has(name)) results.set(name, read(name))
    return results.get(name) as T
  }
}

/**
 * Returns the readings of the request target as received and as the app routes it. Ignores values that are not
 * strings, because a caller of the core may pass anything.
 */
function pathsIn({ url, routedUrl }: RequestFacts): readonly string[] {
  const paths = typeof url === "string" ? pathReadings(url) : NO_PATHS
  if (typeof routedUrl !== "string") return paths
  return routedUrl === url ? paths : [...paths, ...pathReadings(routedUrl)]
}
