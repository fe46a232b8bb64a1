import type { Decision } from "../../decision/decision.ts"
import { UNLIMITED } from "../../decision/decision-record.ts"
import type { Rejection, RejectionAnswer } from "../../ground/answer.ts"
import { ClosedError, type InvalidOptionError } from "../../ground/errors.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import { soon } from "../../ground/time.ts"
import { compileTest } from "../../limiter/callbacks.ts"
import type { Held } from "../../limiter/hold.ts"
import { MARK, type Marked } from "../../limiter/mount-decision.ts"
import type { Part, PreparedRequest } from "../../limiter/prepared-request.ts"
import type { RequestLimiter } from "../../limiter/request-limiter.ts"
import type { RuleSet } from "../../limiter/rule-set/rule-set.ts"
import { ALL_STEPS, type DecisionStep, NO_STEPS } from "../../limiter/rule-set/steps.ts"
import type { RequestFacts } from "../../request/request.ts"
import { type ClosingResponse, clientOf } from "../client-gone.ts"
import { decidedBefore, leftBy } from "./earlier-mounts.ts"
import type { Guard } from "./guard.ts"
import { MountOutcome, type Outcome } from "./mount-outcome.ts"
import { warnCreatedInHandler, warnMountedTooLate, warnSameNames } from "./mount-warnings.ts"
import { compileRejectionHandler, type RejectionHandler } from "./rejection-handler.ts"
import { type GuardedRoute, readRouteRule } from "./route-rule.ts"
import { SteppedCheck } from "./stepped-check.ts"

/** The guard of one limiter, for a mount or for one of its routes. */
export class LimiterGuard<Request extends object> implements Guard<Request> {
  readonly limiter: RequestLimiter<Request>
  readonly settles: boolean
  readonly asksApp: boolean
  /** Closes or leaves the limiter when the guard closes. A no-op for a shared limiter. */
  readonly #leave: () => void | Promise<void>
  /** The guards of its routes, by their limiters. */
  readonly #routes = new Map<RequestLimiter<Request>, LimiterGuard<Request>>()
  readonly #isRoute: boolean
  /** Shared with the guards of its routes. */
  readonly #draining: AbortController
  readonly #handleRejection: RejectionHandler
  readonly #refunds: (request: Request, status: number) => boolean
  readonly #stepped: SteppedCheck<Request>
  #createdInThisTurn = true
  #closed = false

  constructor(
    limiter: RequestLimiter<Request>,
    leave: () => void | Promise<void>,
    draining?: AbortController,
  ) {
    this.limiter = limiter
    this.settles = limiter.options.refundWhen !== undefined
    this.#leave = leave
    this.#isRoute = draining !== undefined
    this.#draining = draining ?? new AbortController()
    this.#stepped = new SteppedCheck(limiter, this.#draining.signal)
    const { onRejected, refundWhen } = limiter.options
    this.asksApp = onRejected !== undefined
    this.#handleRejection = compileRejectionHandler(onRejected, limiter.warner)
    this.#refunds = compileTest("refundWhen", refundWhen, "the units stay taken", limiter.warner)
    // An app receives no requests in the event loop turn that sets it up. If a guard does, a
    // request handler created it.
    soon(() => {
      this.#createdInThisTurn = false
    })
  }

  get steps(): readonly DecisionStep[] {
    return this.limiter.steps
  }

  check(facts: RequestFacts, request: Request): MaybePromise<Outcome>
  check(
    facts: RequestFacts,
    request: Request,
    response: ClosingResponse,
    step?: DecisionStep,
  ): MaybePromise<Outcome | undefined>
  check(
    facts: RequestFacts,
    request: Request,
    response?: ClosingResponse,
    step?: DecisionStep,
  ): MaybePromise<Outcome | undefined> {
    if (this.#createdInThisTurn) warnCreatedInHandler(this.limiter.options.logger)
    if (step !== undefined) return this.#stepped.check(facts, request, response, step)
    const earlier = (request as Marked<MountOutcome>)[MARK]
    const part = earlier === undefined ? undefined : this.#partAfter(earlier)
    const prepared = this.limiter.admission.prepare(facts, request, undefined, part)
    // No closures here: they would cost the synchronous path an allocation.
    return prepared instanceof Promise
      ? this.#decideLater(prepared, facts, request, response, earlier)
      : this.#decide(prepared, facts, request, response, earlier)
  }

  answer(outcome: Outcome, request: Request, response: unknown): MaybePromise<RejectionAnswer | undefined> {
    return this.#handleRejection(outcome.rejection as Rejection, request, outcome.decision, response)
  }

  warnMountedTooLate(): void {
    warnMountedTooLate(this.limiter.warner)
  }

  settle(request: Request, status: number): void {
    for (let mount = (request as Marked<MountOutcome>)[MARK]; mount !== undefined; mount = mount.earlier) {
      if (mount.limiter !== this.limiter || mount.settled) continue
      mount.settled = true
      if (this.#refunds(request, status)) this.limiter.refundInBackground(mount.own)
    }
  }

  forRoute(written: unknown, route: GuardedRoute): Guard<Request> {
    if (this.#closed) throw new ClosedError("The guard has been closed.")
    const limiter = readRouteRule(written, route, (rule) => this.limiter.forRoute(this, rule))
    const known = this.#routes.get(limiter)
    if (known !== undefined) return known
    const leave = (): void => {
      this.#routes.delete(limiter)
      this.limiter.leaveRoute(this, limiter)
    }
    const guard = new LimiterGuard(limiter, leave, this.#draining)
    this.#routes.set(limiter, guard)
    return guard
  }

  warn({ code, message }: InvalidOptionError): void {
    this.limiter.warner.once(code, message, message)
  }

  drain(): void {
    this.#draining.abort()
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    // Closing the guard of one route must not release requests that are held elsewhere.
    if (!this.#isRoute) this.drain()
    for (const route of this.#routes.values()) await route.close()
    await this.#leave()
  }

  async #decideLater(
    prepared: Promise<PreparedRequest<Request> | undefined>,
    facts: RequestFacts,
    request: Request,
    response: ClosingResponse | undefined,
    earlier: MountOutcome | undefined,
  ): Promise<Outcome | undefined> {
    return this.#decide(await prepared, facts, request, response, earlier)
  }

  #decide(
    prepared: PreparedRequest<Request> | undefined,
    facts: RequestFacts,
    request: Request,
    response: ClosingResponse | undefined,
    earlier: MountOutcome | undefined,
  ): MaybePromise<Outcome | undefined> {
    if (prepared === undefined) return this.#uncounted(facts, request, earlier)
    // The rules may change before the store answers. Headers and refusals must use the rules of the decision.
    const { ruleSet } = prepared
    if (earlier !== undefined && prepared.isDecided) return decidedBefore(this.limiter, earlier, ruleSet)
    if (ruleSet.holding !== NO_STEPS) return this.#hold(prepared, response, earlier)
    const decision = this.limiter.admission.take(prepared)
    return decision instanceof Promise
      ? this.#outcomeLater(decision, prepared, earlier)
      : this.#outcome(decision, ruleSet, facts, request, earlier)
  }

  #uncounted(facts: RequestFacts, request: Request, earlier: MountOutcome | undefined): Outcome {
    const { ruleSet } = this.limiter
    const isDecided = earlier !== undefined && this.#partAfter(earlier) !== undefined
    return isDecided
      ? decidedBefore(this.limiter, earlier, ruleSet)
      : this.#outcome(UNLIMITED, ruleSet, facts, request, earlier)
  }

  #hold(
    prepared: PreparedRequest<Request>,
    response: ClosingResponse | undefined,
    earlier: MountOutcome | undefined,
  ): MaybePromise<Outcome | undefined> {
    const { facts, request } = prepared
    const outcomeOf = (held: Held | undefined) => {
      if (held === undefined) return undefined
      const { decision, ruleSet } = held
      // The rules may have changed while the request was held, so that none is left to decide.
      const isDecided = prepared.part !== undefined && decision === UNLIMITED
      return isDecided
        ? decidedBefore(this.limiter, earlier as MountOutcome, ruleSet)
        : this.#outcome(decision, ruleSet, facts, request, earlier)
    }
    const leaving = { client: clientOf(response), draining: this.#draining.signal }
    const held = this.limiter.admission.hold(prepared, leaving)
    return held instanceof Promise ? held.then(outcomeOf) : outcomeOf(held)
  }

  async #outcomeLater(
    decision: Promise<Decision>,
    { ruleSet, facts, request }: PreparedRequest<Request>,
    earlier: MountOutcome | undefined,
  ): Promise<Outcome> {
    return this.#outcome(await decision, ruleSet, facts, request, earlier)
  }

  /**
   * Returns the rules that earlier mounts of this limiter have left; undefined if no mount of
   * it has decided the request.
   */
  #partAfter(earlier: MountOutcome): Part | undefined {
    const isLeft = leftBy(this.limiter, earlier)
    return isLeft && { steps: ALL_STEPS, isLeft }
  }

  /** Returns the outcome of a decision that was made together with others, and keeps it on the request. */
  outcomeOf(decision: Decision, ruleSet: RuleSet, facts: RequestFacts, request: Request): Outcome {
    return this.#outcome(decision, ruleSet, facts, request, (request as Marked<MountOutcome>)[MARK])
  }

  /** Creates the outcome and keeps it on the request for later mounts. */
  #outcome(
    decision: Decision,
    ruleSet: RuleSet,
    facts: RequestFacts,
    request: Request,
    earlier: MountOutcome | undefined,
  ): Outcome {
    const mount = new MountOutcome(this.limiter, ruleSet, decision, earlier, facts, request, undefined)
    if (earlier !== undefined) warnSameNames(this.limiter.warner, mount)
    ;(request as Marked<MountOutcome>)[MARK] = mount
    return mount
  }
}
