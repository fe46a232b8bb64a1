import { releases } from "../../algorithms/kinds.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"
import type { Policy } from "../../ground/policy.ts"
import type { Warner } from "../../ground/warnings.ts"
import { carriesBody } from "../../request/field.ts"
import { compileHiding, hidden } from "../../request/hidden-partition.ts"
import { hasMethod } from "../../request/method.ts"
import { compilePartition, type Partition, SKIP } from "../../request/partition.ts"
import type { FieldReader, RequestFacts } from "../../request/request.ts"
import { compileMatch } from "../../rules/matching/match.ts"
import { compileValueList } from "../../rules/matching/value-list.ts"
import type { ParsedRule } from "../../rules/rule.ts"
import type { CounterKey } from "../../stores/store.ts"
import { testCallback } from "../callbacks/callback.ts"
import type { CallbackResults } from "../callbacks/callback-results.ts"
import type { Mismatch } from "../interface/rule-explanation.ts"
import { compileAmount } from "./amount.ts"
import { compileCalendar } from "./calendar.ts"
import { compileElastic } from "./elastic.ts"
import { rememberedReaders } from "./field-readers.ts"
import { FieldWatch, warnOfMissingField } from "./field-watch.ts"
import { compileLimit, compileOverrides, compileWindow, policyWith, policyWithout } from "./limit.ts"
import { matchMismatches, text, textOfField } from "./mismatch.ts"
import type { RuleContext } from "./rule-context.ts"
import { counterOf, penaltyOf } from "./rule-counters.ts"
import { type StepSet, stepOf, stepSet } from "./steps.ts"

/** A rule that is ready to check requests. */
export interface CompiledRule {
  /** The step at which the rule can be decided. */
  readonly step: StepSet
  /**
   * Returns the check of the request under this rule. Returns undefined if the rule does not apply to the request.
   * `requests` is the number of requests that it counts as. `paths` contains the readings of the request's path, or is
   * empty if no rule needs them.
   */
  ruleCheck(
    facts: RequestFacts,
    results: CallbackResults,
    requests: number,
    paths: readonly string[],
  ): RuleCheck | undefined
  /** Returns the check as if the rule's `match` applied to the request. Always checks for a block. */
  checkAnyway(facts: RequestFacts, results: CallbackResults, requests: number): RuleCheck | undefined
  /** Returns the value of a field that the rule's `match` names, as `match` reads the field. */
  matchedText(field: string, facts: RequestFacts, results: CallbackResults): string | undefined
  /** Returns the counters of the request's client, whether or not the rule applies to this request. */
  counters(facts: RequestFacts, results: CallbackResults): readonly CounterKey[]
  /** Returns the counters of a client by their text, in every window that the rule's window function has returned. */
  countersOf(partition: string): readonly CounterKey[]
  /**
   * Returns the reasons why `ruleCheck` returns undefined. If `readsMatch` is false, explains `checkAnyway` instead.
   */
  mismatches(
    facts: RequestFacts,
    results: CallbackResults,
    paths: readonly string[],
    readsMatch: boolean,
  ): readonly Mismatch[]
}

export function compileRule(rule: ParsedRule, context: RuleContext): CompiledRule {
  const readerOf = rememberedReaders(rule, context)
  // Compare the addresses in lists with the client's own address, not with the /64 network that is counted.
  const listReaderOf = (field: string) => (field === "ip" ? context.clientAddress : readerOf(field))
  const matches = rule.match === undefined ? undefined : compileMatch(rule.match, listReaderOf, hasMethod)
  const when =
    rule.match?.when &&
    testCallback(`match of rule "${rule.name}"`, rule.match.when, true, "the rule applies", context)
  const hide = compileHiding(rule.fields, context.hashKeys, [context.service, context.hashSecret])
  const { partition: known } = context
  const readableOf = compilePartition(rule, readerOf)
  const partitionOf =
    known !== undefined ? () => known : hide === undefined ? readableOf : hidden(readableOf, hide)
  const listed = compileLists(rule, listReaderOf)
  const counter = counterOf(context.service, rule)
  const penalty = penaltyOf(context.service, rule)
  const { blocks, watches } = context
  const watch = watches.get(counter) ?? new FieldWatch(rule.fields)
  if (watch.left > 0) watches.set(counter, watch)
  const hasPenalty = rule.penalty !== undefined
  const unknownLimit = policyWith(rule, counter, 0)
  const limited = compileLimit(rule, counter, unknownLimit, context)
  const windows =
    rule.calendar === undefined
      ? compileWindow(
          rule,
          (windowMs) => counterOf(context.service, { ...rule, windowMs }),
          unknownLimit,
          context,
        )
      : compileCalendar(rule.name, rule.calendar, unknownLimit, context)
  const asksForLimit = typeof rule.limit === "function" || windows !== undefined
  const overridden = compileOverrides(rule, counter, context.clientAddress, hide)
  const { throttle, policyNowOf } = compileElastic(rule, context.warner)
  const { shadow, rejectionMessage, cost, counts: unit } = rule
  const amountOf = compileAmount(rule, context)
  const isReleased = releases(rule)
  // A request that costs 50 is still one request in progress.
  const mostRequests = isReleased ? 1 : Number.POSITIVE_INFINITY
  const onStoreFailure = rule.onStoreFailure ?? context.onStoreFailure
  const needed = rule.fields.length === 0 ? ["service"] : rule.fields
  const countsPreflight = rule.match?.methods?.includes("OPTIONS") === true

  function checkOf(
    facts: RequestFacts,
    results: CallbackResults,
    requests: number,
    looksForBlock: boolean,
    isWatched: boolean,
  ): RuleCheck | undefined {
    const missesBefore = asksForLimit ? results.misses : 0
    const partition = partitionOf(facts, results)
    if (isWatched && watch.left > 0) watchFields(partition, facts, results)
    if (partition === SKIP) return undefined
    const list = listed?.(facts, results)
    if (list === "allow") return undefined
    // Call the functions of the limit and the window only when it is certain that the rule counts the client.
    if (asksForLimit && results.misses > missesBefore) return undefined
    const isText = typeof partition === "string"
    const client = isText ? partition : ""
    const own = isText ? overridden?.(client, facts, results) : undefined
    const ruled = own ?? (typeof limited === "function" ? limited(results) : limited)
    const policy = windows === undefined ? ruled : windows.policyOf(ruled, results, client)
    if (policy === undefined) return undefined
    const policyNow = policyNowOf?.(policy)
    return {
      policy: policyNow === undefined ? policy : policyNow(),
      policyNow,
      partition: client,
      unit,
      unitCost: cost,
      cost: Math.min(
        (amountOf === undefined ? Math.min(requests, mostRequests) : amountOf(results)) * cost,
        Number.MAX_SAFE_INTEGER,
      ),
      shadow,
      rejectionMessage,
      onStoreFailure,
      throttle,
      penalty: !shadow && looksForBlock ? penalty : undefined,
      refusal:
        list === "deny"
          ? "denied"
          : !isText
            ? "missing-field"
            : policy === unknownLimit
              ? "store-failure"
              : undefined,
      field: isText ? undefined : partition.field,
    }
  }

  /** Returns the counters with this text, in these windows. Without windows, the rule has one window. */
  function countersIn(partition: string, inWindows?: readonly Partial<Policy>[]): readonly CounterKey[] {
    // A counter has the same name under any limit, so do not call the limit function.
    const policy: Policy = { ...policyWithout(rule, counter), limit: 0 }
    const policies = inWindows?.map((window) => ({ ...policy, ...window })) ?? [policy]
    // A shadow rule never refuses, so it cannot block.
    return (shadow ? policies : [...policies, penalty]).map((each) => ({ policy: each, partition }))
  }

  /** Warns if this request is the last of the watched first requests, and none of them had the rule's fields. */
  function watchFields(partition: Partition, facts: RequestFacts, results: CallbackResults): void {
    // The request is checked again when the app's functions have settled.
    if (results.isPending) return
    const readable = hide === undefined ? partition : readableOf(facts, results)
    if (watch.isLastWithout(readable, results))
      warnOfMissingField(rule, missingField(facts, results), context)
  }

  /** Returns the first field that the request lacks. The request must lack at least one field of the rule. */
  function missingField(facts: RequestFacts, results: CallbackResults): string {
    return rule.fields.find((field) => readerOf(field)(facts, results) === undefined) as string
  }

  return {
    step: stepOfRule(rule, context),
    ruleCheck(facts, results, requests, paths) {
      if (!countsPreflight && facts.method === "OPTIONS" && isPreflight(facts)) return undefined
      if (facts.onlyFields !== undefined && lacks(facts.onlyFields, needed)) return undefined
      // Read the facts only if the rule has a `match`.
      if (matches?.(facts, results, paths, text(facts.route)) === false) return undefined
      if (when !== undefined && results.resultOf(when) !== true) return undefined
      if (isReleased && facts.cannotRelease === true) return warnOfPermits(rule, context.warner)
      return checkOf(facts, results, requests, hasPenalty || blocks.isOn, true)
    },
    checkAnyway: (facts, results, requests) => checkOf(facts, results, requests, true, false),
    matchedText: (field, facts, results) => listReaderOf(field)(facts, results),
    counters(facts, results) {
      const partition = partitionOf(facts, results)
      return typeof partition === "string" ? countersIn(partition, windows?.counters(results)) : []
    },
    countersOf: (partition) => countersIn(partition, windows?.counters()),
    mismatches(facts, results, paths, readsMatch) {
      if (readsMatch) {
        if (!countsPreflight && isPreflight(facts)) return [{ member: "preflight" }]
        const lacked = needed.find((field) => lacks(facts.onlyFields, [field]))
        if (lacked !== undefined) return [{ member: "onlyFields", field: lacked }]
        if (isReleased && facts.cannotRelease === true) return [{ member: "cannotRelease" }]
        const excluding = matchMismatches(rule.match ?? {}, listReaderOf, facts, results, paths)
        if (excluding.length > 0) return excluding
        if (when !== undefined && results.resultOf(when) === false) return [{ member: "match.when" }]
      }
      // Only a rule with a single field has lists.
      if (listed?.(facts, results) === "allow")
        return [{ member: "allow", ...textOfField(rule.fields[0] as string, listReaderOf, facts, results) }]
      if (partitionOf(facts, results) === SKIP) {
        return [{ member: "onMissing", field: missingField(facts, results) }]
      }
      return [{ member: "limit" }]
    },
  }
}

/**
 * True if `known` is a set that lacks one of the fields. Any other value is ignored, because a caller of the core may
 * pass anything, and a request must not bypass the rule.
 */
function lacks(known: unknown, fields: readonly string[]): boolean {
  return known instanceof Set && !fields.every((field) => known.has(field))
}

/** Warns that the rule does not apply to a request whose permits nobody would release. */
function warnOfPermits({ name }: ParsedRule, warner: Warner): undefined {
  // Do not build the message for each request.
  if (warner.has("SLUICE_CANNOT_RELEASE", "")) return
  warner.once(
    "SLUICE_CANNOT_RELEASE",
    `Rule "${name}" has "concurrent", but nobody says when a request has ended. So such rules do not apply to requests with cannotRelease.`,
  )
}

/**
 * True if the request is a CORS preflight, sent before the actual request (Fetch standard, CORS-preflight request). A
 * preflight has an `Origin` header and no body. An OPTIONS request with a body is not exempt, because a handler for
 * every method would read its body uncounted.
 */
export function isPreflight(facts: RequestFacts): boolean {
  if (facts.method !== "OPTIONS") return false
  // Do not read the headers earlier, because some frameworks create them on first access.
  const { headers } = facts
  return (
    headers?.["access-control-request-method"] !== undefined &&
    headers.origin !== undefined &&
    headers["content-type"] === undefined &&
    facts.hasBody !== true &&
    !carriesBody(headers)
  )
}

/** Returns the earliest step at which the rule can be decided. */
export function stepOfRule(rule: ParsedRule, context: RuleContext): StepSet {
  const isAppField = (name: string): boolean => context.fieldOf(name) !== undefined
  const readsAmount = typeof context.amountOf(rule.counts) === "object"
  return stepSet(stepOf(rule, isAppField, readsAmount, context.firstStep))
}

function compileLists(
  { allow, deny, fields }: ParsedRule,
  readerOf: (field: string) => FieldReader,
): ((facts: RequestFacts, results: CallbackResults) => "allow" | "deny" | undefined) | undefined {
  if (allow.length === 0 && deny.length === 0) return undefined
  // Lists are allowed only in a rule with a single field.
  const field = fields[0] as string
  const read = readerOf(field)
  const allows = compileValueList(field, allow)
  const denies = compileValueList(field, deny)
  return (facts, results) => {
    const value = read(facts, results)
    if (value === undefined) return undefined
    // `deny` wins, because a client that is on both lists by mistake was denied for a reason.
    return denies(value) ? "deny" : allows(value) ? "allow" : undefined
  }
}
