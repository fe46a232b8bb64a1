import type { Decision } from "../../decision/decision.ts"
import { UNLIMITED } from "../../decision/decision-record.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"
import type { Rejection, RejectionAnswer } from "../../ground/answer.ts"
import { ClosedError } from "../../ground/errors.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import { soon } from "../../ground/time.ts"
import { compileTest } from "../../limiter/compile-test.ts"
import type { Held } from "../../limiter/hold.ts"
import { MARK, type Marked } from "../../limiter/mount-decision.ts"
import type { OnRejected } from "../../limiter/options/answer-options.ts"
import type { Part, PreparedRequest } from "../../limiter/prepared-request.ts"
import type { RequestLimiter } from "../../limiter/request-limiter.ts"
import type { RuleSet } from "../../limiter/rule-set/rule-set.ts"
import { ALL_STEPS, type DecisionStep, NO_STEPS } from "../../limiter/rule-set/steps.ts"
import type { RequestFacts } from "../../request/request.ts"
import { type ClosingResponse, clientOf, hasGone } from "../client-gone.ts"
import { decidedBefore, leftBy } from "./earlier-mounts.ts"
import type { Guard } from "./guard.ts"
import { MountOutcome, type Outcome } from "./mount-outcome.ts"
import {
  noteCreatedInHandler,
  warnMountedTooLate,
  warnSameNames,
  wasCreatedInHandler,
} from "./mount-warnings.ts"
import { compileRejectionHandler, type RejectionHandler } from "./rejection-handler.ts"
import { type GuardedRoute, readRouteRule, type WrittenRule } from "./route-rule.ts"
import { SteppedCheck } from "./stepped-check.ts"

/** What distinguishes the guard of a route. */
interface OfRoute {
  /** Shared with the mount. */
  readonly draining: AbortController
  /** The route's own callback; undefined if it has the limiter's. */
  readonly onRejected: OnRejected<unknown> | undefined
  /** Returns whether the guard decides by a rule; undefined if it decides by all rules. */
  readonly isMeant: ((ruleCheck: RuleCheck) => boolean) | undefined
}

/** The guard of one limiter, for a mount or for one of its routes. */
export class LimiterGuard<Request extends object> implements Guard<Request> {
  readonly limiter: RequestLimiter<Request>
  readonly settles: boolean
  readonly asksApp: boolean
  /** Closes or leaves the limiter when the guard closes. A no-op for a shared limiter. */
  readonly #leave: () => void | Promise<void>
  /** The guards of its routes. */
  readonly #routes = new Set<LimiterGuard<Request>>()
  readonly #ofRoute: OfRoute | undefined
  /** Shared with the guards of its routes. */
  readonly #draining: AbortController
  readonly #handleRejection: RejectionHandler
  readonly #refunds: (request: Request, status: number) => boolean
  readonly #stepped: SteppedCheck<Request>
  /** False once it is known that no request handler creates a limiter for each request. */
  #mayBeOfHandler = true
  #closed = false

  constructor(limiter: RequestLimiter<Request>, leave: () => void | Promise<void>, ofRoute?: OfRoute) {
    this.limiter = limiter
    this.settles = limiter.options.refundWhen !== undefined
    this.#leave = leave
    this.#ofRoute = ofRoute
    this.#draining = ofRoute?.draining ?? new AbortController()
    const { refundWhen } = limiter.options
    const onRejected = ofRoute?.onRejected ?? limiter.options.onRejected
    this.asksApp = onRejected !== undefined
    this.#stepped = new SteppedCheck(this, this.#draining.signal)
    this.#handleRejection = compileRejectionHandler(onRejected, limiter.warner)
    this.#refunds = compileTest("refundWhen", refundWhen, "the units stay taken", limiter.warner)
    // An app receives no requests in the event loop turn that sets it up. If a guard does, a
    // request handler created it.
    soon(() => {
      this.#mayBeOfHandler = wasCreatedInHandler(limiter)
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
    if (this.#mayBeOfHandler) this.#noteCreation()
    if (step !== undefined) return this.#stepped.check(facts, request, response, step)
    const earlier = (request as Marked<MountOutcome>)[MARK]
    const isWhole = earlier === undefined && this.#ofRoute?.isMeant === undefined
    const part = isWhole ? undefined : this.#partAfter(earlier)
    const prepared = this.limiter.admission.prepare(facts, request, undefined, part)
    // No closures here: they would cost the synchronous path an allocation.
    return prepared instanceof Promise
      ? this.#decideLater(prepared, facts, request, response, earlier)
      : this.#decide(prepared, facts, request, response, earlier)
  }

  #noteCreation(): void {
    // The second request of a limiter ends the watch.
    this.#mayBeOfHandler = !wasCreatedInHandler(this.limiter)
    noteCreatedInHandler(this.limiter)
  }

  answer(
    { rejection, decision }: Outcome,
    request: Request,
    response: unknown,
    hasAnswered?: () => boolean,
  ): MaybePromise<RejectionAnswer | undefined> {
    return this.#handleRejection(rejection as Rejection, request, decision, response, hasAnswered)
  }

  warnMountedTooLate(routes?: string): void {
    warnMountedTooLate(this.limiter.warner, routes)
  }

  settle(request: Request, status: number): void {
    for (let mount = (request as Marked<MountOutcome>)[MARK]; mount !== undefined; mount = mount.earlier) {
      if (!this.limiter.isRelatedTo(mount.limiter) || mount.settled) continue
      mount.settled = true
      // A refused request may have taken units at earlier steps, which stay taken.
      if (this.#refunds(request, status) && mount.own.allowed) this.limiter.refundInBackground(mount.own)
    }
  }

  forRoute(written: unknown, route: GuardedRoute): Guard<Request> {
    if (this.#closed) throw new ClosedError("The guard has been closed.")
    return readRouteRule(written, route, (rule) => this.#forRule(rule))
  }

  #forRule(rule: WrittenRule): LimiterGuard<Request> {
    const { onRejected, isAlone, name } = rule
    const limiter = this.limiter.forRoute(this, rule)
    for (const known of this.#routes) {
      const ofRoute = known.#ofRoute as OfRoute
      const isSame = ofRoute.onRejected === onRejected && (ofRoute.isMeant !== undefined) === isAlone
      if (known.limiter === limiter && isSame) return known
    }
    const isMeant = isAlone ? ({ policy }: RuleCheck): boolean => policy.name === name : undefined
    const leave = (): void => {
      this.#routes.delete(guard)
      const isUsed = [...this.#routes].some((other) => other.limiter === limiter)
      if (!isUsed) this.limiter.leaveRoute(this, limiter)
    }
    const guard = new LimiterGuard(limiter, leave, { draining: this.#draining, onRejected, isMeant })
    this.#routes.add(guard)
    return guard
  }

  warn({ code, message }: Parameters<Guard<Request>["warn"]>[0]): void {
    this.limiter.warner.once(code, message, message)
  }

  drain(): void {
    this.#draining.abort()
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    // Closing the guard of one route must not release requests that are held elsewhere.
    if (this.#ofRoute === undefined) this.drain()
    for (const route of this.#routes) await route.close()
    await this.#leave()
  }

  async #decideLater(
    prepared: Promise<PreparedRequest<Request> | undefined>,
    facts: RequestFacts,
    request: Request,
    response: ClosingResponse | undefined,
    earlier: MountOutcome | undefined,
  ): Promise<Outcome | undefined> {
    const made = await prepared
    // The client has gone while its request was prepared, so nothing is taken.
    if (response !== undefined && hasGone(response)) return undefined
    return this.#decide(made, facts, request, response, earlier)
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
    return earlier !== undefined && leftBy(this.limiter, earlier) !== undefined
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
      return earlier !== undefined && prepared.part !== undefined && decision === UNLIMITED
        ? decidedBefore(this.limiter, earlier, ruleSet)
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

  /** Returns the rules to decide by, without those by which earlier mounts of this limiter have decided. */
  #partAfter(earlier: MountOutcome | undefined): Part | undefined {
    const isMeant = this.#ofRoute?.isMeant
    const isUndecided = earlier && leftBy(this.limiter, earlier)
    if (isMeant !== undefined && isUndecided !== undefined) {
      return { steps: ALL_STEPS, isLeft: (ruleCheck) => isMeant(ruleCheck) && isUndecided(ruleCheck) }
    }
    const isLeft = isMeant ?? isUndecided
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
    const mount = new MountOutcome(this, ruleSet, decision, earlier, facts, request, undefined)
    if (earlier !== undefined) warnSameNames(this.limiter.warner, mount)
    ;(request as Marked<MountOutcome>)[MARK] = mount
    return mount
  }
}
