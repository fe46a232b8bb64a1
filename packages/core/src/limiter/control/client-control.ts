import { releases } from "../../algorithms/kinds.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import { NamedClient } from "../../request/named-client.ts"
import { SHARED } from "../../request/partition.ts"
import type { ParsedRule } from "../../rules/rule.ts"
import type { CounterKey } from "../../stores/store.ts"
import { CallbackResults } from "../callbacks/callback-results.ts"
import type { LimiterState } from "../checking/limiter-state.ts"
import type { PreparedRequest } from "../checking/prepared-request.ts"
import type { BlockOptions, RuleSelection } from "../interface/limiter.ts"
import type { RuleExplanation } from "../interface/rule-explanation.ts"
import type { ParsedOptions } from "../options/parse-options.ts"
import { type ClientRule, clientRule } from "../rule-set/client-rule.ts"
import type { RouteRules } from "../rule-set/route-rules.ts"
import { isMeant, type RuleSet } from "../rule-set/rule-set.ts"
import type { RulesInForce } from "../rule-set/rules-in-force.ts"
import { parseRuleNames, requireKnown } from "./call-options.ts"
import {
  grantedByNone,
  limitUnknown,
  notByCalendar,
  notGrantable,
  type ParsedPeekOptions,
  parseBlockOptions,
  refusedByNone,
} from "./client-options.ts"
import { explanationOf, mismatchOf } from "./explain-rules.ts"

/** Resets, blocks, unblocks and grants units to a client under the named rules, including rules of routes. */
export class ClientControl<Request> {
  readonly #options: ParsedOptions
  readonly #state: LimiterState<Request>
  readonly #rules: RulesInForce
  readonly #routes: RouteRules<{ readonly ruleSet: RuleSet }>

  constructor(
    options: ParsedOptions,
    state: LimiterState<Request>,
    rules: RulesInForce,
    routes: RouteRules<{ readonly ruleSet: RuleSet }>,
  ) {
    this.#options = options
    this.#state = state
    this.#rules = rules
    this.#routes = routes
  }

  /** Returns the rule names in the option `rules`. Throws InvalidOptionError for a name that no rule has. */
  parseNames(given: readonly string[] | undefined): readonly string[] | undefined {
    const ofRoutes = this.#routes.all.map(({ rule }) => rule.name)
    return parseRuleNames(given, [...this.#rules.current.names, ...ofRoutes])
  }

  /** Returns the checks of a request under the named rules. Without names, returns the checks that `decide` makes. */
  checksOf(
    prepared: PreparedRequest<Request>,
    names: readonly string[] | undefined,
  ): MaybePromise<readonly RuleCheck[]> {
    const { facts, units, ruleChecks } = prepared
    return names === undefined
      ? ruleChecks
      : this.#eachSet(prepared, names, (ruleSet, own) => ruleSet.checksBy(facts, prepared, units, own))
  }

  /** Returns the checks of a named client. Rejects with InvalidOptionError if its limit depends on a request. */
  async checksOfNamed(
    client: NamedClient,
    { rules, amounts }: ParsedPeekOptions,
  ): Promise<readonly RuleCheck[]> {
    if (!this.#options.enabled) return []
    const { rule, check } = await this.#ruleOf(client, rules)
    if (isByRequest(rule)) throw limitUnknown(rule.name)
    return check(amounts)
  }

  /** Explains the rule of a named client. */
  async explainNamed(client: NamedClient, options: ParsedPeekOptions): Promise<readonly RuleExplanation[]> {
    if (!this.#options.enabled) return []
    const { rule, check, mismatches } = await this.#ruleOf(client, options.rules)
    const [made] = check(options.amounts)
    if (made === undefined) return [mismatchOf(rule, mismatches())]
    return [explanationOf(isByRequest(rule) ? { ...made, policy: { ...made.policy, limit: 0 } } : made)]
  }

  /** Returns the rule of a named client. Rejects with InvalidOptionError if no rule has the name, or if the key does not fit. */
  async #ruleOf(client: NamedClient, names: readonly string[] | undefined): Promise<ClientRule> {
    await this.#rules.live?.first
    this.parseNames([client.rule])
    if (names !== undefined) parseRuleNames(names, [client.rule])
    const sets = [this.#rules.current, ...this.#routes.all.map(({ limiter }) => limiter.ruleSet)]
    const found = sets.map((ruleSet) => clientRule(ruleSet, this.#state.context, client))
    return found.find((rule) => rule !== undefined) as ClientRule
  }

  async reset(request: Request, options: RuleSelection): Promise<void> {
    requireKnown(options, ["rules"], "reset()")
    // A disabled limiter has not claimed its names, so the counters may belong to another limiter.
    if (!this.#options.enabled) return
    const all = await this.#countersOf(request, options?.rules)
    // The permits of requests in progress would be counted again by their next renewal.
    const namesRule = options?.rules !== undefined || request instanceof NamedClient
    const counters = !namesRule ? all.filter(({ policy }) => !releases(policy)) : all
    await this.#state.decider.corrections.reset(counters)
    this.#state.wake(counters)
  }

  async block(request: Request, options: BlockOptions): Promise<void> {
    const { forMs, rules } = parseBlockOptions(options)
    if (!this.#options.enabled) return
    await this.#rules.live?.first
    const counters = await this.#countersBy(request, rules, blockCounter)
    if (counters.length === 0) throw refusedByNone()
    const watch = this.#state.blockWatch()
    await this.#state.decider.corrections.block([...counters, watch.counter], forMs)
    watch.began()
  }

  async unblock(request: Request, options: RuleSelection): Promise<void> {
    requireKnown(options, ["rules"], "unblock()")
    if (!this.#options.enabled) return
    const counters = await this.#countersOf(request, options?.rules)
    await this.#state.decider.corrections.reset(counters.filter(isBlocking), "unblock")
    this.#state.wake(counters)
  }

  /** Grants units under rules with `per`. Returns the counters that have them now. */
  async grant(request: Request, units: number, options: RuleSelection): Promise<readonly CounterKey[]> {
    requireKnown(options, ["rules"], "grant()")
    if (!Number.isSafeInteger(units) || units === 0) throw notGrantable(units)
    if (!this.#options.enabled) return []
    await this.#rules.live?.first
    const rules = options?.rules
    if (request instanceof NamedClient) {
      const { rule } = await this.#ruleOf(request, rules)
      if (typeof rule.calendar?.anchor === "function") throw limitUnknown(rule.name)
    }
    const own = [...this.#rules.current.rules, ...this.#routes.all.map(({ rule }) => rule)]
    const byCalendar = own.flatMap(({ name, calendar }) => (calendar === undefined ? [] : [name]))
    const other = this.parseNames(rules)?.find((name) => !byCalendar.includes(name))
    if (other !== undefined) throw notByCalendar(other, "change their limit or overrides")
    const counters = await this.#countersBy(request, rules, grantCounter)
    if (counters.length === 0) throw grantedByNone()
    await this.#state.decider.corrections.grant(counters, units)
    this.#state.wake(counters)
    return counters
  }

  /** Returns those counters of a client that `counterOf` returns for its checks. */
  async #countersBy(
    request: Request,
    given: readonly string[] | undefined,
    counterOf: (check: RuleCheck, rules: readonly ParsedRule[]) => readonly CounterKey[],
  ): Promise<readonly CounterKey[]> {
    if (request instanceof NamedClient) {
      const { rule, check } = await this.#ruleOf(request, given)
      return check().flatMap((made) => counterOf(made, [rule]))
    }
    const names = this.parseNames(given)
    const facts = this.#state.factsReaders.readClient(request)
    const results = new CallbackResults(request)
    return this.#eachSet(results, names, (ruleSet, own) =>
      ruleSet.checksBy(facts, results, 1, own).flatMap((check) => counterOf(check, ruleSet.rules)),
    )
  }

  /**
   * Returns the counters of a client under the named rules, or without names under all rules that have a field.
   */
  async #countersOf(request: Request, given: readonly string[] | undefined): Promise<readonly CounterKey[]> {
    if (request instanceof NamedClient) return (await this.#ruleOf(request, given)).counters()
    await this.#rules.live?.first
    const names = this.parseNames(given)
    const facts = this.#state.factsReaders.readClient(request)
    const results = new CallbackResults(request)
    return this.#eachSet(results, names, (ruleSet, own) => ruleSet.counters(facts, results, own))
  }

  /**
   * Calls `read` with the limiter's rule set, and with the inline rule of each route. The other rules of a route
   * belong to the limiter's set.
   */
  #eachSet<Read>(
    results: CallbackResults,
    names: readonly string[] | undefined,
    read: (ruleSet: RuleSet, names: readonly string[] | undefined) => readonly Read[],
  ): MaybePromise<readonly Read[]> {
    const { current } = this.#rules
    const routes = this.#routes.all.flatMap(({ limiter, rule }) =>
      isMeant(rule, names) ? [{ ruleSet: limiter.ruleSet, name: rule.name }] : [],
    )
    return results.complete(() => [
      ...read(current, names),
      ...routes.flatMap(({ ruleSet, name }) => read(ruleSet, [name])),
    ])
  }
}

/** True if the limit, the window or its first day is computed from each request. */
function isByRequest({ limit, windowOf, calendar }: ParsedRule): boolean {
  return windowOf !== undefined || [limit, calendar?.anchor].some((member) => typeof member === "function")
}

/** True if the counter stores blocks. */
function isBlocking({ policy }: CounterKey): boolean {
  return policy.algorithm === "penalty"
}

/**
 * Returns the counter that stores a block under the checked rule. Returns an empty array if the rule could not refuse
 * the client.
 */
function blockCounter(check: RuleCheck, rules: readonly ParsedRule[]): readonly CounterKey[] {
  const { penalty: policy, partition } = check
  return policy === undefined || isOfNobody(check, rules) ? [] : [{ policy, partition }]
}

/**
 * Returns the counter that stores the units granted under the checked rule. Returns an empty array if its windows are not
 * calendar periods, or if a grant could not admit the client.
 */
function grantCounter(check: RuleCheck, rules: readonly ParsedRule[]): readonly CounterKey[] {
  const { policy, partition, refusal } = check
  const isGrantable = policy.periods !== undefined && refusal === undefined && !isOfNobody(check, rules)
  return isGrantable ? [{ policy, partition }] : []
}

/**
 * True if the request has neither the rule's field nor an address. A block or a grant would affect all such requests or
 * none.
 */
function isOfNobody({ policy, partition, refusal }: RuleCheck, rules: readonly ParsedRule[]): boolean {
  const isShared = () => rules.some(({ name, onMissing }) => name === policy.name && onMissing === "ip")
  return refusal === "missing-field" || (partition === SHARED && isShared())
}
