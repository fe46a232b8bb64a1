import type { Decider } from "../decision/decider.ts"
import { type Decision, RateLimitExceededError } from "../decision/decision.ts"
import { DecisionRecord, HoldingDecision, UNLIMITED } from "../decision/decision-record.ts"
import { RESERVATION_MS, type Reservation } from "../decision/reservation.ts"
import type { RuleCheck } from "../decision/rule-check.ts"
import { acceptOtherCopies, VERSION } from "../ground/copies.ts"
import { InvalidOptionError, type Problem } from "../ground/errors.ts"
import type { Awaitable, MaybePromise } from "../ground/maybe-promise.ts"
import { requireNone } from "../ground/option-checks.ts"
import { show } from "../ground/show.ts"
import { type SignalOption, startCall } from "../ground/signal.ts"
import { beforeDeadline, ignore, keepingAlive, unlessAborted } from "../ground/time.ts"
import type { Warner } from "../ground/warnings.ts"
import type { FactsReader } from "../request/facts-readers.ts"
import { NamedClient } from "../request/named-client.ts"
import type { RequestFacts } from "../request/request.ts"
import type { ReadyOptions, RulesStatus } from "../rules/live-rules.ts"
import type { CounterKey } from "../stores/store.ts"
import type { Amounts } from "./callbacks/callback-results.ts"
import { Admission } from "./checking/admission.ts"
import { LimiterState } from "./checking/limiter-state.ts"
import type { PreparedRequest, Scope } from "./checking/prepared-request.ts"
import {
  parseAcquireOptions,
  parseAmounts,
  parseSettlement,
  parseTakeUpToUnit,
  parseUsed,
  requireDecision,
  requireKnown,
  requireUnits,
  requireWork,
} from "./control/call-options.ts"
import { ClientControl } from "./control/client-control.ts"
import { type ParsedPeekOptions, parsePeekOptions } from "./control/client-options.ts"
import { explainRules } from "./control/explain-rules.ts"
import { Reservations, SETTLED_BEFORE, TOO_LATE } from "./control/reservations.ts"
import { usageOf } from "./control/usage.ts"
import type {
  AcquireOptions,
  AmountOptions,
  BlockOptions,
  Limiter,
  LimiterEvents,
  LimiterStatus,
  PeekOptions,
  RuleSelection,
} from "./interface/limiter.ts"
import { MARK, type Marked } from "./interface/mount-decision.ts"
import type { RuleExplanation } from "./interface/rule-explanation.ts"
import type { RuleUsage } from "./interface/rule-usage.ts"
import { type ParsedOptions, parseInlineRule } from "./options/parse-options.ts"
import { type RouteKey, RouteRules } from "./rule-set/route-rules.ts"
import type { RuleSet } from "./rule-set/rule-set.ts"
import { RulesInForce } from "./rule-set/rules-in-force.ts"
import { type DecisionStep, NO_STEPS, stepSet, stepsFrom, stepsIn } from "./rule-set/steps.ts"

/** The implementation of `Limiter`, with further members for adapters. */
export class RequestLimiter<Request> implements Limiter<Request> {
  static {
    acceptOtherCopies(RequestLimiter)
  }

  readonly options: ParsedOptions
  /** Decides the requests of adapters. */
  readonly admission: Admission<Request>
  #reservations: Reservations<Request> | undefined
  readonly #state: LimiterState<Request>
  readonly #rules: RulesInForce
  readonly #routes: RouteRules<RequestLimiter<Request>>
  readonly #control: ClientControl<Request>

  static create<Request>(options: ParsedOptions): RequestLimiter<Request> {
    // Create the state before names are claimed: this throws if the store is closed.
    const state = new LimiterState<Request>(options)
    try {
      const routes = new RouteRules<RequestLimiter<Request>>()
      const rulesOfRoutes = () => routes.all.map(({ limiter }) => limiter.#rules)
      return new RequestLimiter<Request>(
        options,
        state,
        new RulesInForce(options, state, rulesOfRoutes),
        routes,
      )
    } catch (error) {
      state.endReports()
      throw error
    }
  }

  private constructor(
    options: ParsedOptions,
    state: LimiterState<Request>,
    rules: RulesInForce,
    routes: RouteRules<RequestLimiter<Request>>,
  ) {
    this.#routes = routes
    this.options = options
    this.#state = state
    this.#rules = rules
    this.#control = new ClientControl(options, state, rules, routes)
    this.admission = new Admission(options, state, rules)
  }

  get warner(): Warner {
    return this.#state.warner
  }

  get decider(): Decider {
    return this.#state.decider
  }

  get ruleSet(): RuleSet {
    return this.#rules.current
  }

  get rules(): RulesStatus {
    return this.#rules.status
  }

  get status(): LimiterStatus {
    const { service, store } = this.options
    const { openBreakers, leases, mirrors, writeBack } = store.status ?? {}
    const { ledger } = this.#state.decider
    const permits = ledger.counts
    return {
      service,
      waiting: this.#state.waiting,
      inFlight: ledger.permits,
      ...(permits !== undefined && { permits }),
      ...(store.isShared === true && { isShared: true }),
      ...(openBreakers !== undefined && { openBreakers }),
      ...(leases !== undefined && { leases }),
      ...(mirrors !== undefined && { mirrors }),
      ...(writeBack !== undefined && { writeBack }),
    }
  }

  /**
   * The steps at which the limiter's current and future rules can be decided; never empty. The future rules of a
   * source may need any step.
   */
  get steps(): readonly DecisionStep[] {
    const { firstStep } = this.#state.context
    if (!Array.isArray(this.options.rules)) return stepsIn(stepsFrom(firstStep))
    return stepsIn(this.ruleSet.steps || stepSet(firstStep))
  }

  on<Name extends keyof LimiterEvents<Request>>(
    name: Name,
    listener: (...args: LimiterEvents<Request>[Name]) => void,
  ): void {
    this.#state.events.on(name, listener)
    this.#state.listenersChanged()
  }

  off<Name extends keyof LimiterEvents<Request>>(
    name: Name,
    listener: (...args: LimiterEvents<Request>[Name]) => void,
  ): void {
    this.#state.events.off(name, listener)
    this.#state.listenersChanged()
  }

  decide(request: Request, options?: AmountOptions): Promise<Decision> {
    // This function is not async, because an async function needs three more microtasks to pass on a promise.
    try {
      const prepared = this.#prepare(request, options === undefined ? undefined : this.#amounts(options))
      if (prepared instanceof Promise) return prepared.then((made) => this.admission.take(made))
      return Promise.resolve(this.admission.take(prepared))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Prepares a request for `decideAll`. Throws for invalid amounts, and if the limiter is closed. */
  prepare(request: Request, options: AmountOptions): MaybePromise<PreparedRequest<Request> | undefined> {
    return this.#prepare(request, this.#amounts(options))
  }

  #amounts(options: AmountOptions): Amounts | undefined {
    return parseAmounts(options, this.options.unitNames)
  }

  #prepare(
    request: Request,
    amounts: Amounts | undefined,
    scope?: Scope,
  ): MaybePromise<PreparedRequest<Request> | undefined> {
    this.#state.requireOpen()
    return this.admission.prepare(this.#state.factsReaders.read(request), request, amounts, scope)
  }

  async enforce(request: Request, options?: AmountOptions): Promise<Decision> {
    const decision = await this.decide(request, options)
    if (!decision.allowed) throw new RateLimitExceededError(decision)
    return decision
  }

  async acquire(request: Request, options?: AcquireOptions): Promise<Decision> {
    const { unitNames } = this.options
    const { amounts, priority, signal, maxWaitMs, maxWaiting } = parseAcquireOptions(options, unitNames)
    signal?.throwIfAborted()
    const preparing = this.#prepare(request, amounts)
    const prepared =
      preparing instanceof Promise ? await keepingAlive(unlessAborted(preparing, signal)) : preparing
    if (prepared === undefined) return UNLIMITED
    let { ruleChecks } = prepared
    let latest = ruleChecks
    const decision = await this.#state.waitingRoom().enter(ruleChecks, {
      ...{ signal, maxWaitMs, maxWaiting, waitsFor: everyRule },
      priority: priority ?? this.admission.priorityOf(request),
      currentChecks() {
        const renewed = prepared.renewed()?.ruleChecks
        latest = renewed ?? latest
        return renewed
      },
      onRulesChanged() {
        ruleChecks = latest
      },
    })
    this.admission.announce(decision, request, "acquire", prepared.startedMs, ruleChecks)
    if (!decision.allowed) throw new RateLimitExceededError(decision)
    return decision
  }

  async run<Result>(
    request: Request,
    work: (decision: Decision) => Awaitable<Result>,
    options?: AcquireOptions,
  ): Promise<Result> {
    requireWork(work)
    const decision = await this.acquire(request, options)
    try {
      return await work(decision)
    } finally {
      // A release does not reject because of the store, so the result of the work is never hidden.
      if (HoldingDecision.holds(decision)) {
        await beforeDeadline(this.release(decision), this.options.storeTimeoutMs, ignore)
      }
    }
  }

  async takeUpTo(
    request: Request,
    units: number,
    options?: { readonly unit?: string | undefined },
  ): Promise<Decision> {
    requireUnits(units)
    const unit = parseTakeUpToUnit(options, this.options.unitNames)
    const prepared = await this.#prepare(request, new Map([[unit, 1]]))
    if (prepared === undefined) return { ...UNLIMITED, cost: units }
    const { ruleChecks, startedMs } = prepared
    const decision = await this.#state.decider.takeUpTo(ruleChecks, units, unit)
    this.admission.announce(decision, request, "takeUpTo", startedMs, ruleChecks)
    return decision
  }

  client(rule: string, key: string | readonly string[]): RequestFacts {
    return new NamedClient(rule, key)
  }

  // `peek`, `usage`, `explain`, `reset`, `block` and `unblock` accept plain facts as a request. Functions in the options
  // receive the request that was passed.
  peek(request: Request | RequestFacts, options?: PeekOptions): Promise<Decision>
  async peek(request: Request, options?: PeekOptions): Promise<Decision> {
    const checks = await this.#checksOf(request, parsePeekOptions(options, "peek()", this.options.unitNames))
    return checks === undefined ? UNLIMITED : this.#state.decider.peek(checks)
  }

  usage(request: Request | RequestFacts, options?: RuleSelection): Promise<readonly RuleUsage[]>
  async usage(request: Request, options: RuleSelection = {}): Promise<readonly RuleUsage[]> {
    requireKnown(options, ["rules"], "usage()")
    const rules = options?.rules
    const checks = await this.#checksOf(request, { amounts: undefined, rules })
    return usageOf(this.#state.decider, checks ?? [], rules)
  }

  /** Returns the checks of a request or of a named client. Returns undefined if the request is not counted. */
  async #checksOf(request: Request, parsed: ParsedPeekOptions): Promise<readonly RuleCheck[] | undefined> {
    if (request instanceof NamedClient) {
      this.#state.requireOpen()
      return this.#control.checksOfNamed(request, parsed)
    }
    const { amounts, rules } = parsed
    const prepared = await this.#prepare(request, amounts, scopeOf(rules))
    if (prepared === undefined) return undefined
    return this.#control.checksOf(prepared, this.#control.parseNames(rules))
  }

  explain(request: Request | RequestFacts, options?: PeekOptions): Promise<readonly RuleExplanation[]>
  async explain(request: Request, options?: PeekOptions): Promise<readonly RuleExplanation[]> {
    const parsed = parsePeekOptions(options, "explain()", this.options.unitNames)
    if (request instanceof NamedClient) {
      this.#state.requireOpen()
      return this.#control.explainNamed(request, parsed)
    }
    const { amounts, rules } = parsed
    const prepared = await this.#prepare(request, amounts, scopeOf(rules))
    if (prepared === undefined) return []
    const names = this.#control.parseNames(rules)
    const checks = await this.#control.checksOf(prepared, names)
    return prepared.complete(() => explainRules(prepared, checks, names))
  }

  async refund(decision: Decision): Promise<void> {
    this.#state.requireOpen()
    const { decider } = this.#state
    requireDecision(decision, decider)
    // Two calls, so that released permits wake requests even if the units cannot be refunded.
    await Promise.all([
      this.#wakeAfter(decision, (part) => decider.corrections.release(part)),
      this.#wakeAfter(decision, (part) => decider.corrections.refund(part)),
    ])
  }

  async release(decision: Decision): Promise<void> {
    const { decider } = this.#state
    requireDecision(decision, decider)
    await this.#wakeAfter(decision, (part) => decider.corrections.release(part))
  }

  /** Releases the permits after a request has ended, without making a caller wait. */
  releaseInBackground(decision: Decision): void {
    if (!HoldingDecision.holds(decision)) return
    const { corrections } = this.#state.decider
    void this.#wakeAfter(decision, (part) => corrections.release(part))
  }

  /**
   * Refunds the units after a request has been answered, without making a caller wait. A failed refund is emitted as
   * an event and logged.
   */
  refundInBackground(decision: Decision): void {
    const { decider, isClosed } = this.#state
    if (isClosed) return
    void this.#wakeAfter(decision, (part) => decider.corrections.refundInBackground(part))
  }

  async settle(decision: Decision, used: number | Readonly<Record<string, number>>): Promise<void> {
    this.#state.requireOpen()
    const { decider } = this.#state
    requireDecision(decision, decider)
    const units = parseUsed(used, this.options.unitNames)
    await this.#wakeAfter(decision, (part) => decider.corrections.settle(part, units))
  }

  /** Reserves, settles and renews what decisions took. */
  get reservations(): Reservations<Request> {
    this.#reservations ??= new Reservations(this.options, this.#state, this.#rules)
    return this.#reservations
  }

  reserve(decision: Decision, lifetimeMs: number = RESERVATION_MS): Reservation {
    this.#state.requireOpen()
    return this.reservations.reserve(decision, lifetimeMs)
  }

  async settleReservation(
    text: string,
    options?: Parameters<Limiter["settleReservation"]>[1],
  ): Promise<boolean> {
    this.#state.requireOpen()
    const end = await this.reservations.settle(text, parseSettlement(options, this.options.unitNames))
    requireNone(end === "late" ? [TOO_LATE] : [])
    return end === undefined
  }

  async renewReservation(text: string): Promise<Reservation> {
    this.#state.requireOpen()
    const renewed = await this.reservations.renew(text)
    const isEnded = typeof renewed === "string"
    requireNone(isEnded ? [renewed === "late" ? TOO_LATE : SETTLED_BEFORE] : [])
    return renewed as Reservation
  }

  /**
   * Corrects all parts of a decision at the same time, and wakes the requests that wait for the refunded units. Rejects
   * with the first error.
   */
  async #wakeAfter(
    decision: Decision,
    correct: (part: Decision) => Promise<readonly CounterKey[]>,
  ): Promise<void> {
    await Promise.all(
      DecisionRecord.joinedFrom(decision).map(async (part) => this.#state.wake(await correct(part))),
    )
  }

  decisionOn(request: Request & object): Decision | undefined {
    for (let mount = (request as Marked | undefined)?.[MARK]; mount !== undefined; mount = mount.earlier) {
      const isOwn = this.isRelatedTo(mount.limiter)
      // If this mount skipped the request, an earlier mount may have counted it.
      if (isOwn && (mount.own.checks.length > 0 || mount.earlier === undefined)) return mount.own
    }
    return undefined
  }

  /**
   * True if the given limiter is this limiter, or if both share their state because at least one belongs to a route.
   */
  isRelatedTo(limiter: object): boolean {
    return #state in limiter && limiter.#state === this.#state
  }

  reset(request: Request | RequestFacts, options?: RuleSelection): Promise<void>
  async reset(request: Request, options: RuleSelection = {}): Promise<void> {
    this.#state.requireOpen()
    await this.#control.reset(request, options)
  }

  block(request: Request | RequestFacts, options: BlockOptions): Promise<void>
  async block(request: Request, options: BlockOptions): Promise<void> {
    this.#state.requireOpen()
    await this.#control.block(request, options)
  }

  unblock(request: Request | RequestFacts, options?: RuleSelection): Promise<void>
  async unblock(request: Request, options: RuleSelection = {}): Promise<void> {
    this.#state.requireOpen()
    await this.#control.unblock(request, options)
  }

  grant(request: Request | RequestFacts, units: number, options?: RuleSelection): Promise<void>
  async grant(request: Request, units: number, options: RuleSelection = {}): Promise<void> {
    this.#state.requireOpen()
    const counters = await this.#control.grant(request, units, options)
    if (counters.length > 0) this.#state.events.emit("granted", units, counters)
  }

  async ready(options?: ReadyOptions): Promise<void> {
    this.#state.requireOpen()
    await this.#rules.ready(startCall(options))
  }

  async refresh(options?: SignalOption): Promise<void> {
    this.#state.requireOpen()
    await this.#rules.refresh(startCall(options))
  }

  async close(): Promise<void> {
    const state = this.#state
    if (state.isClosed) return
    state.close()
    this.#rules.close()
    state.endReports()
    state.events.emit("closed")
    state.events.clear()
    if (this.options.ownsStore) await this.options.store.close()
  }

  /**
   * Registers an adapter's reader, so that `peek`, `reset` and similar calls accept the framework's own request.
   * These calls then apply to the client that the adapter counts.
   */
  readFactsWith(reader: FactsReader): void {
    this.#state.factsReaders.add(reader)
  }

  /**
   * Returns a limiter for one route of a mount, with the route's rule instead of the inline rule. Mounts with the same
   * rule share one limiter. Throws {@link InvalidOptionError}.
   */
  forRoute(
    mount: object,
    route: RouteKey & { readonly rule: object; readonly defaultName: string },
  ): RequestLimiter<Request> {
    this.#state.requireOpen()
    const { rule, problems } = parseInlineRule(route.rule, this.options, route.defaultName)
    if (rule === undefined) throw new InvalidOptionError(problems)
    const make = () =>
      new RequestLimiter<Request>(this.options, this.#state, this.#rules.ofRoute(rule), new RouteRules())
    return this.#routes.join(mount, route, rule, make)
  }

  /**
   * Releases the limiter of a route that a mount no longer needs. The rule's name becomes free when no mount needs
   * the rule.
   */
  leaveRoute(mount: object, route: RequestLimiter<Request>): void {
    const unused = this.#routes.leave(mount, route)
    if (unused !== undefined) unused.#rules.giveUp()
  }
}

/**
 * Returns a scope without steps if rules are named, because other rules would read fields that the request may lack.
 */
function scopeOf(rules: readonly string[] | undefined): Scope | undefined {
  return rules === undefined ? undefined : { steps: NO_STEPS, isLeft: undefined }
}

/** `acquire` waits for every rule. */
function everyRule(): boolean {
  return true
}

/** Returns the problem of a value that is not an instance of RequestLimiter. */
export function notALimiter(value: unknown): Omit<Problem, "path"> & { readonly accepted: string } {
  if ((value as object | undefined)?.constructor?.name !== RequestLimiter.name) {
    return { message: `${show(value)} is not a limiter`, accepted: "a limiter that createLimiter() returned" }
  }
  return {
    message: "is a limiter of another version of @sluice/core",
    accepted: `a limiter of version ${VERSION}; "npm ls @sluice/core" lists all versions`,
  }
}
