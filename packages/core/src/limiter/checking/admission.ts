import type { Decision } from "../../decision/decision.ts"
import { UNLIMITED } from "../../decision/decision-record.ts"
import type { SafeEvents } from "../../ground/events.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import { REQUESTS } from "../../ground/policy.ts"
import type { RequestFacts } from "../../request/request.ts"
import { type Callback, testCallback } from "../callbacks/callback.ts"
import type { Amounts } from "../callbacks/callback-results.ts"
import type { DecisionCall, LimiterEvents } from "../interface/limiter.ts"
import type { ParsedOptions } from "../options/parse-options.ts"
import type { RulesInForce } from "../rule-set/rules-in-force.ts"
import { compilePriority } from "./compile-priority.ts"
import { type Held, holdInLine, type Leaving } from "./hold.ts"
import type { LimiterState } from "./limiter-state.ts"
import { PreparedRequest, type Scope } from "./prepared-request.ts"

/** Prepares requests for a decision, and decides the requests of adapters and of `decide`. */
export class Admission<Request> {
  readonly events: SafeEvents<LimiterEvents<Request>>
  readonly #state: LimiterState<Request>
  readonly rules: RulesInForce
  readonly #isEnabled: boolean
  /** The option `cost`: the units of each request, or the callback that returns them. */
  readonly #cost: number | Callback<number>
  /** The option `skip`. Undefined if no request is skipped. */
  readonly #skip: Callback<boolean> | undefined
  /** Returns the priority of a request by the option `priority`. */
  readonly priorityOf: (request: Request) => number

  constructor({ enabled, skip, priority }: ParsedOptions, state: LimiterState<Request>, rules: RulesInForce) {
    this.#state = state
    this.rules = rules
    this.events = state.events
    this.#isEnabled = enabled
    const { context } = state
    this.#cost = context.amountOf(REQUESTS) ?? 1
    this.#skip = skip && testCallback("skip", skip, false, "the request is counted", context)
    this.priorityOf = compilePriority(priority, state.warner)
  }

  /** Whether the request is counted. Returns a promise only if `skip` does. */
  counts(request: Request): MaybePromise<boolean> {
    if (!this.#isEnabled || this.#skip === undefined) return this.#isEnabled
    const skipped = this.#skip.outcome(request)
    return skipped instanceof Promise ? skipped.then((isSkipped) => !isSkipped) : !skipped
  }

  /**
   * Prepares a request, which is the first step of every call. Returns the request with its checks under the rules in
   * force. Returns undefined if the request is not counted, because `skip` skips it or the limiter is disabled.
   * Returns a promise only while the first rules are loading, or if one of the app's functions returns a promise.
   * `amounts` override the options `cost` and `units`.
   */
  prepare(
    facts: RequestFacts,
    request: Request,
    amounts: Amounts | undefined,
    scope?: Scope,
  ): MaybePromise<PreparedRequest<Request> | undefined> {
    // Read the clock only if the event has a listener.
    const startedMs = this.events.has("decision") ? performance.now() : undefined
    // Apply `skip` (health checks) even before the rules have loaded.
    const counts = this.counts(request)
    if (counts === false) return undefined
    const first = this.rules.live?.first
    // No closures here: they would cost the synchronous path an allocation.
    if (first !== undefined || counts !== true)
      return this.#prepareAfter(counts, first, facts, request, amounts, scope, startedMs)
    return this.prepareCounted(facts, request, amounts, scope, startedMs)
  }

  /** Prepares a counted request under the rules in force. Does not call `skip`. */
  prepareCounted(
    facts: RequestFacts,
    request: Request,
    amounts: Amounts | undefined,
    scope: Scope | undefined,
    startedMs: number | undefined,
  ): MaybePromise<PreparedRequest<Request>> {
    const units = amounts?.get(REQUESTS) ?? this.#cost
    const prepared = new PreparedRequest(this.rules, facts, request, amounts, units, scope, startedMs)
    return prepared.isPending ? prepared.settled(units) : prepared
  }

  async #prepareAfter(
    counts: MaybePromise<boolean>,
    first: Promise<void> | undefined,
    facts: RequestFacts,
    request: Request,
    amounts: Amounts | undefined,
    scope: Scope | undefined,
    startedMs: number | undefined,
  ): Promise<PreparedRequest<Request> | undefined> {
    if (!(await counts)) return undefined
    await first
    return this.prepareCounted(facts, request, amounts, scope, startedMs)
  }

  /** Decides a request. Returns a value, not a promise, if the store returns a value. */
  take(prepared: PreparedRequest<Request> | undefined): MaybePromise<Decision> {
    if (prepared === undefined) return UNLIMITED
    const { decider } = this.#state
    const { ruleChecks, startedMs } = prepared
    const decision = prepared.isStoreGone ? decider.takeWithoutStore(ruleChecks) : decider.take(ruleChecks)
    if (startedMs === undefined && !this.events.has("decided")) return decision
    return decision instanceof Promise
      ? decision.then((made) => this.#toldOf(made, prepared))
      : this.#toldOf(decision, prepared)
  }

  #toldOf(decision: Decision, { request, startedMs, ruleChecks }: PreparedRequest<Request>): Decision {
    this.announce(decision, request, "decide", startedMs, ruleChecks)
    return decision
  }

  /**
   * Emits the events "decided" and "decision". `startedMs` is undefined if nothing listened to "decision" when the call
   * began.
   */
  announce(
    decision: Decision,
    request: Request,
    operation: DecisionCall["operation"],
    startedMs: number | undefined,
    counters: DecisionCall["counters"],
  ): void {
    this.events.emitPair("decided", decision, counters)
    if (startedMs !== undefined) this.tell(decision, request, operation, startedMs, counters)
  }

  /** Emits a "decision" event. */
  tell(
    decision: Decision,
    request: Request,
    operation: DecisionCall["operation"],
    startedMs: number,
    counters: DecisionCall["counters"],
  ): void {
    const durationMs = performance.now() - startedMs
    this.events.emit("decision", decision, request, { operation, durationMs, counters })
  }

  /**
   * Decides a request as `take` does, but holds it while rules that queue refuse it. The `maxWaitMs` and `maxWaiting`
   * of these rules limit the wait. A leaky bucket among them also delays the request. Returns undefined if the client
   * disconnects in the meantime; then no units stay taken.
   */
  hold(prepared: PreparedRequest<Request>, leaving: Leaving): MaybePromise<Held | undefined> {
    const { isClosed, warner } = this.#state
    const { request, ruleSet, ruleChecks } = prepared
    if (!isClosed && !prepared.isStoreGone) {
      const held = holdInLine(this.#state.waitingRoom(), prepared, this.priorityOf(request), leaving, warner)
      if (!this.events.has("decided")) return held
      return held instanceof Promise ? held.then(this.#heard) : this.#heard(held)
    }
    const held = (decision: Decision): Held => ({ decision, ruleSet, ruleChecks })
    const decision = this.take(prepared)
    return decision instanceof Promise ? decision.then(held) : held(decision)
  }

  /** Emits the event "decided" for a request that was held. */
  readonly #heard = (held: Held | undefined): Held | undefined => {
    if (held !== undefined) this.events.emitPair("decided", held.decision, held.ruleChecks)
    return held
  }
}
