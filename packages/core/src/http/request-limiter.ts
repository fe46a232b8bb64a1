import { ClosedError, InvalidOptionError } from "../errors.ts"
import type { Ask } from "../limiter/ask.ts"
import type { Decision } from "../limiter/decision.ts"
import { UNLIMITED } from "../limiter/decision-record.ts"
import { RateLimitExceededError } from "../limiter/rate-limit-exceeded.ts"
import { orAborted } from "../limiter/waiting/on-abort.ts"
import { held } from "../rules/book/timing.ts"
import type { ReadyOptions, RulesStatus } from "../rules/rule-book.ts"
import type { MaybePromise } from "../stores/store.ts"
import type { Warner } from "../warnings.ts"
import {
  parseAcquireOptions,
  parseCost,
  parsePolicies,
  requireDecision,
  requireResetOptions,
  requireUnits,
} from "./call-options.ts"
import { compileTest, compileUnits } from "./callbacks.ts"
import { DecisionReporter } from "./decision-reporter.ts"
import { type Asked, type Held, holdInLine, type Leaving } from "./hold.ts"
import type { AcquireOptions, CostOption, Limiter, LimiterEvents, LimiterStatus } from "./limiter.ts"
import { createParts, type LimiterParts } from "./limiter-parts.ts"
import { type ParsedOptions, parseInlineRule } from "./parse-options.ts"
import type { RequestFacts } from "./request.ts"
import type { FactsReader } from "./request-facts.ts"
import type { RuleSet } from "./rule-set.ts"
import { RulesInForce } from "./rules-in-force.ts"

/** The limiter behind the interface, with what a guard needs of it besides. */
export class RequestLimiter<Request> implements Limiter<Request> {
  readonly options: ParsedOptions
  readonly #parts: LimiterParts<Request>
  readonly #reporter: DecisionReporter<Request>
  readonly #rules: RulesInForce<Request>
  readonly #unitsOf: (request: Request) => number
  /** Undefined where all requests are counted. */
  readonly #skips: ((request: Request) => boolean) | undefined
  #closed = false

  static create<Request>(options: ParsedOptions): RequestLimiter<Request> {
    // Before names are claimed: a store that is closed already refuses.
    const parts = createParts<Request>(options)
    try {
      return new RequestLimiter<Request>(options, parts, new RulesInForce(options, parts))
    } catch (error) {
      parts.unsubscribe()
      throw error
    }
  }

  private constructor(options: ParsedOptions, parts: LimiterParts<Request>, rules: RulesInForce<Request>) {
    this.options = options
    this.#parts = parts
    this.#rules = rules
    this.#reporter = new DecisionReporter(parts.events)
    this.#unitsOf = compileUnits(options.cost, parts.warner)
    const { enabled, skip } = options
    if (!enabled) this.#skips = () => true
    // Stryker disable next-line ConditionalExpression: what skips nobody is asked in vain
    else if (skip !== undefined) {
      this.#skips = compileTest("skip", skip, "such a request is counted", parts.warner)
    }
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

  /** Whether no rule, now or later, reads more than what is there when a request arrives. */
  get readsArrivalOnly(): boolean {
    const { cost, skip, rules } = this.options
    return (
      Array.isArray(rules) && typeof cost === "number" && skip === undefined && this.ruleSet.readsArrivalOnly
    )
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
      return Promise.resolve(this.admit(facts, request, parseCost(options)))
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
    const { first } = this.#rules
    if (first !== undefined) await held(orAborted(first, signal))
    if (!this.#counts(request)) return UNLIMITED
    const [facts, units] = [this.#parts.factsReaders.read(request), cost ?? this.#unitsOf(request)]
    const asksAnew = () => this.#asks(facts, request, units)
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
    await this.#rules.first
    const decision = this.#counts(request)
      ? await this.#parts.decider.takeUpTo(
          this.#asks(this.#parts.factsReaders.read(request), request, 1),
          units,
        )
      : { ...UNLIMITED, cost: units }
    this.#reporter.tell(decision, request, "takeUpTo", startedMs)
    return decision
  }

  // Facts alone stand for a request here, and the callbacks of the options get what was given.
  peek(request: Request | RequestFacts, options?: CostOption): Promise<Decision>
  async peek(request: Request, options?: CostOption): Promise<Decision> {
    this.#requireOpen()
    const cost = parseCost(options)
    await this.#rules.first
    if (!this.#counts(request)) return UNLIMITED
    return this.#parts.decider.peek(this.#asks(this.#parts.factsReaders.read(request), request, cost))
  }

  async refund(decision: Decision): Promise<void> {
    this.#requireOpen()
    requireDecision(decision)
    const { decider, waitingRoom } = this.#parts
    waitingRoom.wake(await decider.refund(decision))
  }

  async settle(decision: Decision, units: number): Promise<void> {
    this.#requireOpen()
    requireDecision(decision)
    requireUnits(units)
    const { decider, waitingRoom } = this.#parts
    waitingRoom.wake(await decider.settle(decision, units))
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
    await this.#rules.first
    const { ruleSet } = this
    const { decider, waitingRoom } = this.#parts
    const policies = parsePolicies(options.policies, ruleSet.names)
    const counters = ruleSet.counters(this.#parts.factsReaders.read(request), request, policies)
    await decider.reset(counters)
    waitingRoom.wake(counters)
  }

  async ready(options: ReadyOptions = {}): Promise<void> {
    this.#requireOpen()
    options.signal?.throwIfAborted()
    await this.#rules.ready(options)
  }

  async refresh(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    this.#requireOpen()
    options.signal?.throwIfAborted()
    await this.#rules.refresh(options)
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#parts.waitingRoom.close()
    this.#rules.close()
    this.#parts.unsubscribe()
    this.#parts.events.emit("closed")
    this.#parts.events.clear()
    if (this.options.ownsStore) await this.options.store.close()
  }

  /** `decide` for an adapter: facts and the framework's own request. Answers with a value when the store does. */
  admit(facts: RequestFacts, request: Request, cost: number | undefined): MaybePromise<Decision> {
    const { first } = this.#rules
    const startedMs = this.#reporter.start()
    return first === undefined
      ? this.#admit(facts, request, cost, startedMs)
      : this.#admitAfter(first, facts, request, cost, startedMs)
  }

  /**
   * `admit`, but a request that does not fit under rules that queue is held until it does, as long and as many as they
   * say; and as long as a leaky bucket among them says. Undefined when its client has gone meanwhile: nothing stays taken.
   */
  hold(facts: RequestFacts, request: Request, leaving: Leaving): MaybePromise<Held | undefined> {
    const { ruleSet } = this
    const startedMs = this.#reporter.start()
    if (this.#closed) {
      const decision = this.#admit(facts, request, undefined, startedMs)
      const held = (made: Decision): Held => ({ decision: made, ruleSet })
      return decision instanceof Promise ? decision.then(held) : held(decision)
    }
    if (!this.#counts(request)) return { decision: UNLIMITED, ruleSet }
    const units = this.#unitsOf(request)
    const askedNow = (): Asked => ({ asks: this.#asks(facts, request, units), ruleSet: this.ruleSet })
    const held = holdInLine(this.#parts.waitingRoom, askedNow, leaving, this.warner)
    const tell = (made: Held | undefined): Held | undefined => {
      if (made !== undefined) this.#reporter.tell(made.decision, request, "hold", startedMs)
      return made
    }
    return held instanceof Promise ? held.then(tell) : tell(held)
  }

  /** Lets `peek`, `reset` and the like be asked with a framework's request, and mean whom its adapter counts. */
  readFactsWith(reader: FactsReader): void {
    this.#parts.factsReaders.add(reader)
  }

  /** A limiter for one route: the rule in place of the inline one. Throws {@link InvalidOptionError}. */
  forRoute(value: object, name: string): RequestLimiter<Request> {
    const { rule, problems } = parseInlineRule(value, name)
    if (rule === undefined) throw new InvalidOptionError(problems)
    return new RequestLimiter<Request>(this.options, this.#parts, this.#rules.ofRoute(rule))
  }

  async #admitAfter(
    first: Promise<void>,
    facts: RequestFacts,
    request: Request,
    cost: number | undefined,
    startedMs: number | undefined,
  ): Promise<Decision> {
    await first
    return this.#admit(facts, request, cost, startedMs)
  }

  #admit(
    facts: RequestFacts,
    request: Request,
    cost: number | undefined,
    startedMs: number | undefined,
  ): MaybePromise<Decision> {
    if (!this.#counts(request)) return UNLIMITED
    const decision = this.#parts.decider.take(this.#asks(facts, request, cost))
    return this.#reporter.told(decision, request, "decide", startedMs)
  }

  #counts(request: Request): boolean {
    return this.#skips === undefined || !this.#skips(request)
  }

  #asks(facts: RequestFacts, request: Request, cost: number | undefined): readonly Ask[] {
    return this.ruleSet.asks(facts, request, cost ?? this.#unitsOf(request))
  }

  #requireOpen(): void {
    if (this.#closed) throw new ClosedError("The limiter has been closed.")
  }
}

/** Who acquires waits for any rule. */
function everyRule(): boolean {
  return true
}
