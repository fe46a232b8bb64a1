import { ClosedError, InvalidOptionError } from "../errors.ts"
import type { Decision } from "../limiter/decision.ts"
import { DecisionRecord, UNLIMITED } from "../limiter/decision-record.ts"
import { RateLimitExceededError } from "../limiter/rate-limit-exceeded.ts"
import { orAborted } from "../limiter/waiting/on-abort.ts"
import { held } from "../rules/book/timing.ts"
import { startCall } from "../rules/call-start.ts"
import type { ParsedRule } from "../rules/parsed-rule.ts"
import type { ReadyOptions, RulesStatus, SignalOption } from "../rules/rule-book.ts"
import type { Warner } from "../warnings.ts"
import { Admission } from "./admission.ts"
import {
  parseAcquireOptions,
  parseCost,
  parsePolicies,
  requireDecision,
  requireResetOptions,
  requireUnits,
} from "./call-options.ts"
import { DecisionReporter } from "./decision-reporter.ts"
import type { AcquireOptions, CostOption, Limiter, LimiterEvents, LimiterStatus } from "./limiter.ts"
import { createParts, type LimiterParts } from "./limiter-parts.ts"
import { MARK, type Marked } from "./mark.ts"
import { type ParsedOptions, parseInlineRule } from "./options/parse-options.ts"
import type { RequestFacts } from "./request.ts"
import type { FactsReader } from "./request-facts.ts"
import { RouteLimiters } from "./route-limiters.ts"
import type { RuleSet } from "./rule-set/rule-set.ts"
import { type DecisionStep, stepSet, stepsFrom, stepsIn } from "./rule-set/steps.ts"
import { RulesInForce } from "./rules-in-force.ts"

/** The limiter behind the interface, with what a guard needs of it besides. */
export class RequestLimiter<Request> implements Limiter<Request> {
  readonly options: ParsedOptions
  /** What becomes of the requests that an adapter has. */
  readonly admission: Admission<Request>
  readonly #parts: LimiterParts<Request>
  readonly #reporter: DecisionReporter<Request>
  readonly #rules: RulesInForce<Request>
  readonly #routes = new RouteLimiters<RequestLimiter<Request>>()
  #closed = false

  static create<Request>(options: ParsedOptions): RequestLimiter<Request> {
    // Before names are claimed: a store that is closed already refuses.
    const parts = createParts<Request>(options)
    try {
      return new RequestLimiter<Request>(options, parts, new RulesInForce(options, parts))
    } catch (error) {
      parts.close()
      throw error
    }
  }

  private constructor(options: ParsedOptions, parts: LimiterParts<Request>, rules: RulesInForce<Request>) {
    this.options = options
    this.#parts = parts
    this.#rules = rules
    this.#reporter = new DecisionReporter(parts.events)
    this.admission = new Admission(options, parts, rules, this.#reporter)
  }

  get warner(): Warner {
    return this.#parts.warner
  }

  get ruleSet(): RuleSet {
    return this.#rules.current
  }

  get rules(): RulesStatus {
    return this.#rules.status
  }

  get status(): LimiterStatus {
    const { service, store } = this.options
    const { openBreakers } = store
    const waiting = this.#parts.waitingRoom.size
    return { service, waiting, ...(openBreakers !== undefined && { openBreakers }) }
  }

  /** What the first decisions have to wait for; undefined once rules are there or cannot be had in time. */
  get firstRules(): Promise<void> | undefined {
    return this.#rules.first
  }

  /** The steps at which its rules, now or later, can be decided: at least one. Rules of a source may be decided at any of them. */
  get steps(): readonly DecisionStep[] {
    const { firstStep } = this.#parts.context
    if (!Array.isArray(this.options.rules)) return stepsIn(stepsFrom(firstStep))
    return stepsIn(this.ruleSet.steps || stepSet(firstStep))
  }

  on<Name extends keyof LimiterEvents<Request>>(
    name: Name,
    listener: (...args: LimiterEvents<Request>[Name]) => void,
  ): void {
    this.#parts.events.on(name, listener)
  }

  off<Name extends keyof LimiterEvents<Request>>(
    name: Name,
    listener: (...args: LimiterEvents<Request>[Name]) => void,
  ): void {
    this.#parts.events.off(name, listener)
  }

  decide(request: Request, options?: CostOption): Promise<Decision> {
    // An async function would wait three more turns for a promise that it returns.
    try {
      this.#requireOpen()
      const facts = this.#parts.factsReaders.read(request)
      return Promise.resolve(this.admission.admit(facts, request, parseCost(options)))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async enforce(request: Request, options?: CostOption): Promise<Decision> {
    const decision = await this.decide(request, options)
    if (!decision.allowed) throw new RateLimitExceededError(decision)
    return decision
  }

  async acquire(request: Request, options?: AcquireOptions): Promise<Decision> {
    this.#requireOpen()
    const startedMs = this.#reporter.start()
    const { cost, signal, maxWaitMs, maxWaiting } = parseAcquireOptions(options)
    signal?.throwIfAborted()
    if (!this.admission.counts(request)) return UNLIMITED
    const { first } = this.#rules
    if (first !== undefined) await held(orAborted(first, signal))
    const [facts, units] = [this.#parts.factsReaders.read(request), cost ?? this.admission.unitsOf(request)]
    const asksAnew = () => this.admission.asks(facts, request, units)
    const patience = { signal, maxWaitMs, maxWaiting, waitsFor: everyRule, asksAnew }
    const decision = await this.#parts.waitingRoom.enter(asksAnew(), patience)
    this.#reporter.tell(decision, request, "acquire", startedMs)
    if (!decision.allowed) throw new RateLimitExceededError(decision)
    return decision
  }

  async takeUpTo(request: Request, units: number): Promise<Decision> {
    this.#requireOpen()
    requireUnits(units)
    const startedMs = this.#reporter.start()
    if (!this.admission.counts(request)) return { ...UNLIMITED, cost: units }
    await this.#rules.first
    const asks = this.admission.asks(this.#parts.factsReaders.read(request), request, 1)
    const decision = await this.#parts.decider.takeUpTo(asks, units)
    this.#reporter.tell(decision, request, "takeUpTo", startedMs)
    return decision
  }

  // Facts alone stand for a request here, and the callbacks of the options get what was given.
  peek(request: Request | RequestFacts, options?: CostOption): Promise<Decision>
  async peek(request: Request, options?: CostOption): Promise<Decision> {
    this.#requireOpen()
    const cost = parseCost(options)
    if (!this.admission.counts(request)) return UNLIMITED
    await this.#rules.first
    return this.#parts.decider.peek(
      this.admission.asks(this.#parts.factsReaders.read(request), request, cost),
    )
  }

  async refund(decision: Decision): Promise<void> {
    this.#requireOpen()
    const { decider, waitingRoom } = this.#parts
    requireDecision(decision, decider)
    await forEachPart(decision, async (part) => waitingRoom.wake(await decider.refund(part)))
  }

  /** Gives the units back after a request has been answered, when nobody waits. A loss is reported as an event and a warning. */
  refundInBackground(decision: Decision): void {
    if (this.#closed) return
    const { decider, waitingRoom } = this.#parts
    void forEachPart(decision, async (part) => waitingRoom.wake(await decider.refundInBackground(part)))
  }

  async settle(decision: Decision, units: number): Promise<void> {
    this.#requireOpen()
    const { decider, waitingRoom } = this.#parts
    requireDecision(decision, decider)
    requireUnits(units)
    await forEachPart(decision, async (part) => waitingRoom.wake(await decider.settle(part, units)))
  }

  decisionOn(request: Request & object): Decision | undefined {
    for (let mark = (request as Marked | undefined)?.[MARK]; mark !== undefined; mark = mark.earlier) {
      // Those of its routes are made by other limiters, of the same parts.
      const isOwn = mark.limiter instanceof RequestLimiter && mark.limiter.#parts === this.#parts
      // Where it was skipped another mount may have counted it.
      if (isOwn && (mark.own.checks.length > 0 || mark.earlier === undefined)) return mark.own
    }
    return undefined
  }

  reset(
    request: Request | RequestFacts,
    options?: { readonly policies?: readonly string[] | undefined },
  ): Promise<void>
  async reset(
    request: Request,
    options: { readonly policies?: readonly string[] | undefined } = {},
  ): Promise<void> {
    this.#requireOpen()
    requireResetOptions(options)
    // Without a claim on its names, the counters may be those of another limiter.
    if (!this.options.enabled) return
    await this.#rules.first
    const { ruleSet } = this
    const { decider, waitingRoom } = this.#parts
    const routes = this.#routes.all
    const policies = parsePolicies(options?.policies, [
      ...ruleSet.names,
      ...routes.map(({ rule }) => rule.name),
    ])
    const facts = this.#parts.factsReaders.read(request)
    const isMeant = ({ name, fields }: ParsedRule) => policies?.includes(name) ?? fields.length > 0
    const counters = [
      ...ruleSet.counters(facts, request, policies),
      // Of a route its own rule: the others are this limiter's, too.
      ...routes
        .filter(({ rule }) => isMeant(rule))
        .flatMap(({ limiter, rule }) => limiter.ruleSet.counters(facts, request, [rule.name])),
    ]
    await decider.reset(counters)
    waitingRoom.wake(counters)
  }

  async ready(options?: ReadyOptions): Promise<void> {
    this.#requireOpen()
    await this.#rules.ready(startCall(options))
  }

  async refresh(options?: SignalOption): Promise<void> {
    this.#requireOpen()
    await this.#rules.refresh(startCall(options))
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#parts.waitingRoom.close()
    this.#rules.close()
    this.#parts.close()
    this.#parts.events.emit("closed")
    this.#parts.events.clear()
    if (this.options.ownsStore) await this.options.store.close()
  }

  /** Lets `peek`, `reset` and the like be asked with a framework's request, and mean whom its adapter counts. */
  readFactsWith(reader: FactsReader): void {
    this.#parts.factsReaders.add(reader)
  }

  /**
   * A limiter for one route: the rule in place of the inline one. The same one where another mount has the same rule.
   * Throws {@link InvalidOptionError}.
   */
  forRoute(value: object, name: string): RequestLimiter<Request> {
    this.#requireOpen()
    const { rule, problems } = parseInlineRule(value, this.options.cost, name)
    if (rule === undefined) throw new InvalidOptionError(problems)
    return this.#routes.join(
      rule,
      () => new RequestLimiter<Request>(this.options, this.#parts, this.#rules.ofRoute(rule)),
    )
  }

  /** Who has asked for this limiter of a route needs it no more. */
  leaveRoute(route: RequestLimiter<Request>): void {
    this.#routes.leave(route)
  }

  /** Of a route's limiter: its rule's name is free. */
  giveUp(): void {
    this.#rules.giveUp()
  }

  #requireOpen(): void {
    if (this.#closed) throw new ClosedError("The limiter has been closed.")
  }
}

/** Who acquires waits for any rule. */
function everyRule(): boolean {
  return true
}

/** Starts an action on all parts of a decision at once. Rejects with the first error. */
async function forEachPart(decision: Decision, act: (part: Decision) => Promise<void>): Promise<void> {
  await Promise.all(DecisionRecord.partsOf(decision).map(act))
}
