import type { RuleCheck } from "../../decision/rule-check.ts"
import type { Policy } from "../../ground/policy.ts"
import { carriesBody } from "../../request/field.ts"
import { compilePartition, SKIP } from "../../request/partition.ts"
import type { FieldReader, RequestFacts } from "../../request/request.ts"
import { compileMatch, type Matcher } from "../../rules/matching/match.ts"
import { compileValueList } from "../../rules/matching/value-list.ts"
import type { ParsedRule } from "../../rules/parsing/parsed-rule.ts"
import type { CounterKey } from "../../stores/store.ts"
import { compileElastic } from "./elastic.ts"
import { appExtractor, rememberedReaders } from "./field-readers.ts"
import { compileLimit, policyWithout } from "./limit.ts"
import type { RuleContext } from "./rule-context.ts"
import { counterOf, penaltyOf } from "./rule-counters.ts"
import { type StepSet, stepOf, stepSet } from "./steps.ts"

/** A rule ready to be asked for. */
export interface CompiledRule {
  readonly rule: ParsedRule
  /** The step at which the rule can be decided. */
  readonly step: StepSet
  /**
   * What the request has to ask of the store under this rule, `units` times the rule's cost; undefined when the rule
   * is not for this request. `paths` are the readings of the request's path, where any rule needs them.
   */
  ruleCheck(
    facts: RequestFacts,
    request: unknown,
    units: number,
    paths: readonly string[],
  ): RuleCheck | undefined
  /** What `ask` returns of a request that the rule is for. Looks for a block in any case. */
  checkAnyway(facts: RequestFacts, request: unknown, units: number): RuleCheck | undefined
  /** The text of a field that the rule's `match` names, as the match reads it. */
  matchedText(field: string, facts: RequestFacts, request: unknown): string | undefined
  /** The counters of the client behind the request, whether or not the rule is for this very request. */
  counters(facts: RequestFacts, request: unknown): readonly CounterKey[]
}

export function compileRule(rule: ParsedRule, context: RuleContext): CompiledRule {
  const readerOf = rememberedReaders(rule, context)
  // Lists of addresses are compared with the address itself, not with the /64 that it is counted in.
  const listReaderOf = (field: string) => (field === "ip" ? context.clientAddress : readerOf(field))
  const matcher = rule.match === undefined ? undefined : compileMatch(rule.match)
  const matchReaders = new Map(matcher?.fields.map((field) => [field, listReaderOf(field)]))
  const partitionOf = compilePartition(rule, readerOf)
  const listed = compileLists(rule, listReaderOf)
  const counter = counterOf(context.service, rule)
  const penalty = penaltyOf(context.service, rule)
  const { blocks } = context
  const hasPenalty = rule.penalty !== undefined
  const policyOf = compileLimit(rule, counter, context.warner)
  const { throttle, policyNowOf } = compileElastic(rule, context.warner)
  const { shadow, rejectionMessage, cost } = rule
  const onStoreFailure = rule.onStoreFailure ?? context.onStoreFailure
  const needed = rule.fields.length === 0 ? ["service"] : rule.fields
  const countsPreflight = rule.match?.methods?.includes("OPTIONS") === true

  function matchedText(field: string, facts: RequestFacts, request: unknown): string | undefined {
    return (matchReaders.get(field) as FieldReader)(facts, request)
  }

  // By itself, as a closure in `ask` would be paid for by rules, too, that match everything.
  function isMatched(by: Matcher, facts: RequestFacts, request: unknown, paths: readonly string[]): boolean {
    const fieldText = (field: string) => matchedText(field, facts, request)
    return by.matches(text(facts.method), paths, text(facts.route), fieldText)
  }

  function checkOf(
    facts: RequestFacts,
    request: unknown,
    units: number,
    looksForBlock: boolean,
  ): RuleCheck | undefined {
    const policy = policyOf(request)
    if (policy === undefined) return undefined
    const list = listed?.(facts, request)
    if (list === "allow") return undefined
    const partition = partitionOf(facts, request)
    if (partition === SKIP) return undefined
    const isText = typeof partition === "string"
    const policyNow = policyNowOf?.(policy)
    return {
      policy: policyNow === undefined ? policy : policyNow(),
      policyNow,
      partition: isText ? partition : "",
      unitCost: cost,
      cost: Math.min(units * cost, Number.MAX_SAFE_INTEGER),
      shadow,
      rejectionMessage,
      onStoreFailure,
      throttle,
      penalty: !shadow && looksForBlock ? penalty : undefined,
      refusal: list === "deny" ? "denied" : isText ? undefined : "missing-field",
      field: isText ? undefined : partition.field,
    }
  }

  return {
    rule,
    step: stepOfRule(rule, context),
    ruleCheck(facts, request, units, paths) {
      if (!countsPreflight && facts.method === "OPTIONS" && isPreflight(facts)) return undefined
      if (facts.onlyFields !== undefined && lacks(facts.onlyFields, needed)) return undefined
      if (matcher !== undefined && !isMatched(matcher, facts, request, paths)) return undefined
      return checkOf(facts, request, units, hasPenalty || blocks.isOn)
    },
    checkAnyway: (facts, request, units) => checkOf(facts, request, units, true),
    matchedText,
    counters(facts, request) {
      const partition = partitionOf(facts, request)
      if (typeof partition !== "string") return []
      // A counter has the same name under any limit, so the limit function is not asked.
      const policy: Policy = { ...policyWithout(rule, counter), limit: 0 }
      // A shadow rule refuses nobody.
      return (shadow ? [policy] : [policy, penalty]).map((each) => ({ policy: each, partition }))
    },
  }
}

/** What is no set says nothing: a caller of the core might pass anything, and nobody is to be let in by that. */
function lacks(known: unknown, fields: readonly string[]): boolean {
  return known instanceof Set && !fields.every((field) => known.has(field))
}

/** Returns the fact if it is a text: a caller of the core might pass anything. */
export function text(fact: unknown): string | undefined {
  return typeof fact === "string" ? fact : undefined
}

/**
 * A preflight asks on behalf of a request that has not been made yet (Fetch standard, CORS-preflight request): it names the
 * origin and has no body. Whoever sends one would have it read, uncounted, by a handler that is for every method.
 */
export function isPreflight(facts: RequestFacts): boolean {
  if (facts.method !== "OPTIONS") return false
  // Not before: a framework makes them when they are asked for.
  const { headers } = facts
  return (
    headers?.["access-control-request-method"] !== undefined &&
    headers.origin !== undefined &&
    // Over HTTP/2 a body needs no header that says so, but nobody reads one of which it is not known what it is.
    headers["content-type"] === undefined &&
    !carriesBody(headers)
  )
}

/** Returns the step at which the rule can be decided. */
export function stepOfRule(rule: ParsedRule, context: RuleContext): StepSet {
  return stepSet(stepOf(rule, (name) => appExtractor(name, context) !== undefined, context.firstStep))
}

function compileLists(
  { allow, deny, fields }: ParsedRule,
  readerOf: (field: string) => FieldReader,
): ((facts: RequestFacts, request: unknown) => "allow" | "deny" | undefined) | undefined {
  if (allow.length === 0 && deny.length === 0) return undefined
  // Lists are of the values of a rule's one field.
  const field = fields[0] as string
  const read = readerOf(field)
  const allows = compileValueList(field, allow)
  const denies = compileValueList(field, deny)
  return (facts, request) => {
    const value = read(facts, request)
    if (value === undefined) return undefined
    // Denied wins: whoever is on both lists by mistake was put on one of them for a reason that hurts.
    return denies(value) ? "deny" : allows(value) ? "allow" : undefined
  }
}
