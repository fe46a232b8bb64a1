import { createHash } from "node:crypto"
import { textOf } from "../../errors.ts"
import type { Ask } from "../../limiter/ask.ts"
import type { BlockWatch } from "../../limiter/block-watch.ts"
import type { OnStoreFailure, Penalty, Policy } from "../../policy.ts"
import { compileMatch, type Matcher } from "../../rules/match.ts"
import type { ParsedRule } from "../../rules/parsed-rule.ts"
import { compileValueList } from "../../rules/value-list.ts"
import { closest } from "../../show.ts"
import type { CounterKey } from "../../stores/store.ts"
import type { Warner } from "../../warnings.ts"
import { carriesBody, compileField, isBuiltInField } from "../client/field.ts"
import { compilePartition, SKIP } from "../client/partition.ts"
import type { ClientAddressReader, RequestFacts } from "../request.ts"
import { type FieldReader } from "../request.ts"
import { compileElastic } from "./elastic.ts"
import { compileLimit, policyWithout } from "./limit.ts"
import { type DecisionStep, type StepSet, stepOf, stepSet } from "./steps.ts"

/** What all rules of a limiter are compiled with. */
export interface RuleContext {
  readonly service: string
  readonly onStoreFailure: OnStoreFailure
  readonly clientAddress: ClientAddressReader
  readonly clientGroup: ClientAddressReader
  /** What reads a field of the app's own, by its name. */
  readonly extractorOf: (name: string) => ((request: unknown) => unknown) | undefined
  /** Names of which it knows, for who has written another one by mistake. */
  readonly extractorNames: readonly string[]
  readonly warner: Warner
  /** The first step at which any rule is decided. */
  readonly firstStep: DecisionStep
  /** Whether clients may be blocked by hand. */
  readonly blocks: BlockWatch
}

/** A rule ready to be asked for. */
export interface CompiledRule {
  readonly rule: ParsedRule
  /** The step at which the rule can be decided. */
  readonly step: StepSet
  /**
   * What the request has to ask of the store under this rule, `units` times the rule's cost; undefined when the rule
   * is not for this request. `paths` are the readings of the request's path, where any rule needs them.
   */
  ask(facts: RequestFacts, request: unknown, units: number, paths: readonly string[]): Ask | undefined
  /** What `ask` returns of a request that the rule is for. Looks for a block in any case. */
  askAnyway(facts: RequestFacts, request: unknown, units: number): Ask | undefined
  /** The text of a field that the rule's `match` names, as the match reads it. */
  matchedText(field: string, facts: RequestFacts, request: unknown): string | undefined
  /** The counters of the client behind the request, whether or not the rule is for this very request. */
  counters(facts: RequestFacts, request: unknown): readonly CounterKey[]
}

export function compileRule(rule: ParsedRule, context: RuleContext): CompiledRule {
  const readerOf = rememberedReaders(rule, context)
  // Lists of addresses are compared with the address itself, not with the /64 that it is counted in.
  const listReaderOf = (field: string) => (field === "ip" ? context.clientAddress : readerOf(field))
  // Stryker disable next-line ConditionalExpression: what matches everything yields the same, only slower
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

  function askOf(
    facts: RequestFacts,
    request: unknown,
    units: number,
    looksForBlock: boolean,
  ): Ask | undefined {
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
      // Stryker disable next-line StringLiteral: whoever lacks a field is refused before any counter is asked
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
    ask(facts, request, units, paths) {
      if (!countsPreflight && isPreflight(facts)) return undefined
      if (lacks(facts.onlyFields, needed)) return undefined
      // Stryker disable next-line ConditionalExpression: what matches everything yields the same, only slower
      if (matcher !== undefined && !isMatched(matcher, facts, request, paths)) return undefined
      return askOf(facts, request, units, hasPenalty || blocks.isOn)
    },
    askAnyway: (facts, request, units) => askOf(facts, request, units, true),
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

/**
 * Returns the short name of a rule's counters. A change of window, algorithm, buckets or refill starts new counters; a
 * change of limit, burst, throttle, cost or message does not.
 */
function counterOf(service: string, rule: ParsedRule): string {
  const { name, fields, algorithm, windowMs, align, buckets, refill } = rule
  // Where a rule has neither, its counters are named as if there were no such thing.
  const more = buckets === undefined && refill === undefined ? [] : [buckets ?? 0, refill ?? "continuous"]
  const identity = JSON.stringify([service, name, fields, algorithm, windowMs, align, ...more])
  return fingerprint(identity)
}

/** Returns what `BlockWatch` marks in the store while clients of the service are blocked. */
export function blocksOf(service: string): Policy {
  const counter = fingerprint(JSON.stringify([service, "blocks"]))
  return {
    name: "",
    counter,
    algorithm: "penalty",
    align: "epoch",
    limit: 0,
    windowMs: 1,
    penalty: NO_PENALTY,
  }
}

/** Of a rule that counts no refusals. */
const NO_PENALTY: Penalty = { refusals: 0, withinMs: 1, forMs: 1 }

/**
 * Returns what counts the refusals of a rule that has a penalty, and holds blocks by hand. Its counter has a name of its own, so
 * that no change of the rule's window or algorithm lifts a block; a change of the penalty's times applies to existing blocks.
 */
function penaltyOf(service: string, { name, fields, penalty = NO_PENALTY }: ParsedRule): Policy {
  const identity = JSON.stringify([service, name, fields, "penalty"])
  return {
    name,
    counter: fingerprint(identity),
    algorithm: "penalty",
    align: "epoch",
    limit: penalty.refusals,
    windowMs: Math.max(penalty.withinMs, penalty.forMs),
    penalty,
  }
}

/**
 * Returns 96 bits of a hash in 16 characters. Whoever may choose names finds two that collide after some 2^48 tries, where
 * 48 bits took 2^24: two minutes.
 */
function fingerprint(identity: string): string {
  return createHash("sha256").update(identity).digest("base64url").slice(0, 16)
}

/** What is no set says nothing: a caller of the core might pass anything, and nobody is to be let in by that. */
function lacks(known: unknown, fields: readonly string[]): boolean {
  // Stryker disable next-line ConditionalExpression: nearly always it is absent, and a set it is not then either
  return known !== undefined && known instanceof Set && !fields.every((field) => known.has(field))
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

/** Returns the function of the app that reads the field, if there is one. */
function appExtractor(
  name: string,
  { extractorOf }: RuleContext,
): ((request: unknown) => unknown) | undefined {
  return isBuiltInField(name) ? undefined : extractorOf(name)
}

/** Returns what compiles each field once. */
function rememberedReaders(rule: ParsedRule, context: RuleContext): (field: string) => FieldReader {
  const { warner, clientGroup, extractorNames } = context
  const readers = new Map<string, FieldReader>()
  const compile = (name: string): FieldReader => {
    return compileField(name, appExtractor(name, context), {
      clientGroup,
      matchedPath: rule.match?.path,
      onClientChosen: () => {
        const meant = closest(name, extractorNames)
        warner.once(
          "SLUICE_CLIENT_CHOSEN_FIELD",
          `Rule "${rule.name}" goes by "${name}", which is read from the request, so a client can choose it freely. ` +
            (meant === undefined
              ? `Set fields: { "${name}": (request) => … } to take it from your authentication.`
              : `Did you mean "${meant}" of your fields?`),
          name,
        )
      },
      onBodyMissing: () =>
        warner.once(
          "SLUICE_BODY_NOT_PARSED",
          `Rule "${rule.name}" counts by "${name}", but no body parser has run before the limiter. ` +
            "Mount the body parser first; until then the rule's onMissing decides.",
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
  return (name) => {
    const reader = readers.get(name) ?? compile(name)
    readers.set(name, reader)
    return reader
  }
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
