import type { RuleCheck } from "../../decision/rule-check.ts"
import { canonicalAddress } from "../../ground/address.ts"
import { DEFAULT_ANCHOR } from "../../ground/calendar.ts"
import { InvalidOptionError } from "../../ground/errors.ts"
import { REQUESTS } from "../../ground/policy.ts"
import { show } from "../../ground/show.ts"
import type { NamedClient } from "../../request/named-client.ts"
import { isStandIn, partitionValues } from "../../request/partition.ts"
import type { RequestFacts } from "../../request/request.ts"
import { canonicalValue } from "../../rules/matching/value-list.ts"
import type { Calendar, ParsedRule } from "../../rules/rule.ts"
import type { CounterKey } from "../../stores/store.ts"
import { type Amounts, CallbackResults } from "../callbacks/callback-results.ts"
import type { Mismatch } from "../interface/rule-explanation.ts"
import { type CompiledRule, compileRule } from "./compiled-rule.ts"
import { fieldCallback } from "./field-callback.ts"
import type { RuleContext } from "./rule-context.ts"
import type { RuleSet } from "./rule-set.ts"

/** A rule that is compiled for one client, without a request. */
export interface ClientRule {
  readonly rule: ParsedRule
  /** Returns the check of a request that takes these amounts, or nothing if the rule does not limit the client. */
  check(amounts?: Amounts): readonly RuleCheck[]
  /** Returns the client's counters. */
  counters(): readonly CounterKey[]
  /** Returns the reasons why `check` returns nothing. */
  mismatches(): readonly Mismatch[]
}

/** The text of a counter that is a hash. */
const HASH = /^#[\w-]{22}$/
const NO_FACTS: RequestFacts = {}
const ADDRESS = 'an address, such as "192.0.2.7"'

/**
 * Returns the rule of a named client, or undefined if the rule set has no such rule. Throws InvalidOptionError if the key
 * does not fit the rule.
 */
export function clientRule(
  ruleSet: Pick<RuleSet, "rules" | "compiled">,
  context: RuleContext,
  client: NamedClient,
): ClientRule | undefined {
  const position = ruleSet.rules.findIndex(({ name }) => name === client.rule)
  const rule = ruleSet.rules[position]
  if (rule === undefined) return undefined
  // Only the rule that is compiled for all clients knows the windows that its function has returned.
  const shared = ruleSet.compiled(position)
  const compiled = compileFor(rule, context, client)
  const resultsOf = (amounts?: Amounts) => new CallbackResults(client, amounts)
  return {
    rule,
    check(amounts) {
      const units = amounts?.get(REQUESTS) ?? 1
      return [compiled.checkAnyway(NO_FACTS, resultsOf(amounts), units) ?? []].flat()
    },
    counters() {
      // No field is missing, so there is a counter.
      const [{ partition }] = compiled.counters(NO_FACTS, resultsOf()) as readonly [CounterKey]
      return shared.countersOf(partition)
    },
    mismatches: () => compiled.mismatches(NO_FACTS, resultsOf(), [], false),
  }
}

/**
 * Compiles the rule with fields that have the values of the key, so that lists and overrides apply as to the client's own
 * requests. No function of the app is called, because there is no request: a limit and a window of a function are any
 * constants, and a request takes 1 of each unit.
 */
function compileFor(rule: ParsedRule, context: RuleContext, { key }: NamedClient): CompiledRule {
  const { windowOf: _, calendar, ...others } = rule
  const known = {
    ...others,
    limit: typeof rule.limit === "function" ? 1 : rule.limit,
    ...(calendar !== undefined && { calendar: { ...calendar, anchor: fixedAnchorOf(calendar) } }),
  }
  // Lists of clients show a hash instead of the values. No client's own value is likely to look like one.
  const text = typeof key !== "string" && key.length === 1 && HASH.test(key[0] as string) ? key[0] : key
  const values = typeof text === "string" ? partitionValues(text) : text
  if (values === undefined) {
    const partition = text as string
    if (isStandIn(partition) || HASH.test(partition)) return compileRule(known, { ...context, partition })
    throw wrong(`${show(text)} is not the text of a counter`, 'a list of values, such as ["ada"]')
  }
  const byField = fieldValues(rule, values, context)
  const address = byField.get("ip")
  return compileRule(known, {
    ...context,
    fieldOf: (name) => (name === "ip" ? undefined : fieldCallback(name, () => byField.get(name), context)),
    amountOf: () => 1,
    clientAddress: () => address,
    clientGroup: () => address && context.groupOf(address),
  })
}

function fixedAnchorOf({ per, anchor }: Calendar): number {
  return typeof anchor === "function" ? DEFAULT_ANCHOR[per] : anchor
}

/** Returns the values by field, in their canonical spelling. */
function fieldValues(
  { name, fields }: ParsedRule,
  values: readonly string[],
  { groupOf }: RuleContext,
): ReadonlyMap<string, string> {
  if (values.length !== fields.length) {
    const has = values.length === 1 ? "1 value" : `${values.length} values`
    const counts = fields.length === 0 ? "counts the whole service" : `counts by ${fields.join(" and ")}`
    throw wrong(
      `has ${has}, but rule ${show(name)} ${counts}`,
      fields.length === 0 ? "no value" : `a value for ${fields.join(", then for ")}`,
    )
  }
  return new Map(
    fields.map((field, index) => {
      const value = values[index] as string
      if (value === "") throw wrong(`has no value for ${show(field)}`, "the value of the field")
      if (field !== "ip") return [field, canonicalValue(field, value)]
      const [written = "", ...length] = value.split("/")
      const address = canonicalAddress(written)
      if (address === undefined) throw wrong(`${show(value)} is not an IP address`, ADDRESS)
      // The key of an IPv6 client contains the client's network. In any other network are several clients, or a part of one.
      if (length.length > 0 && groupOf(address) !== [address, ...length].join("/"))
        throw wrong(`${show(value)} is not the network of one client`, ADDRESS)
      return [field, address]
    }),
  )
}

function wrong(message: string, accepted: string): InvalidOptionError {
  return new InvalidOptionError([{ path: "client", message, accepted }])
}
