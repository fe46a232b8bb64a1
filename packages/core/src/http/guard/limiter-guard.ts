import { HoldingDecision } from "../../decision/decision-record.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"
import type { Rejection, RejectionAnswer } from "../../ground/answer.ts"
import { ClosedError } from "../../ground/errors.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import { ignore, soon } from "../../ground/time.ts"
import { compileTest } from "../../limiter/callbacks/compile-test.ts"
import { MARK, type Marked } from "../../limiter/interface/mount-decision.ts"
import type { OnRejected } from "../../limiter/options/answer-options.ts"
import type { RequestLimiter } from "../../limiter/request-limiter.ts"
import type { DecisionStep } from "../../limiter/rule-set/steps.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { ClosingResponse } from "../client-gone.ts"
import type { Guard } from "./guard.ts"
import { MountCheck } from "./mount-check.ts"
import type { MountOutcome, Outcome } from "./mount-outcome.ts"
import { noteCreatedInHandler, warnMountedTooLate, wasCreatedInHandler } from "./mount-warnings.ts"
import { compileRejectionHandler, type RejectionHandler } from "./rejection-handler.ts"
import { type GuardedRoute, readRouteRule, type WrittenRule } from "./route-rule.ts"

/** The settings in which a route's guard differs from the guard of a mount. */
interface OfRoute {
  /** Aborts when the server drains. The route shares this controller with its mount. */
  readonly draining: AbortController
  /** The route's own callback. Undefined if the route uses the limiter's callback. */
  readonly onRejected: OnRejected<unknown> | undefined
  /** Returns whether the guard checks a rule. Undefined if the guard checks all rules. */
  readonly isMeant: ((ruleCheck: RuleCheck) => boolean) | undefined
}

/** The guard of one limiter, for a mount or for one of its routes. */
export class LimiterGuard<Request extends object> extends MountCheck<Request> implements Guard<Request> {
  readonly needsStatus: boolean
  readonly asksApp: boolean
  readonly throws: boolean
  /**
   * Closes the guard's own limiter, or releases the route's limiter, when the guard closes. A no-op for a shared
   * limiter.
   */
  readonly #leave: () => void | Promise<void>
  /** The guards of this guard's routes. */
  readonly #routes = new Set<LimiterGuard<Request>>()
  readonly #ofRoute: OfRoute | undefined
  /** Aborts when the server drains. Shared with the guards of this guard's routes. */
  readonly #draining: AbortController
  readonly #handleRejection: RejectionHandler
  readonly #refunds: (request: Request, status: number) => boolean
  /** False once it is known that no request handler creates a limiter for each request. */
  #mayBeOfHandler: boolean
  #closed = false

  constructor(
    limiter: RequestLimiter<Request>,
    leave: () => void | Promise<void>,
    throws: boolean,
    ofRoute?: OfRoute,
  ) {
    const draining = ofRoute?.draining ?? new AbortController()
    super(limiter, draining.signal, ofRoute?.isMeant)
    this.needsStatus = limiter.options.refundWhen !== undefined
    this.throws = throws
    this.#leave = leave
    this.#ofRoute = ofRoute
    this.#draining = draining
    const { refundWhen } = limiter.options
    const onRejected = ofRoute?.onRejected ?? limiter.options.onRejected
    this.asksApp = onRejected !== undefined
    this.#handleRejection = compileRejectionHandler(onRejected, limiter.warner)
    this.#refunds = compileTest("refundWhen", refundWhen, "the units stay taken", limiter.warner)
    // An app receives no requests in the event loop turn that sets it up. So if a guard checks a request in its first
    // turn, a request handler created the guard. Adapters may create the guard of a route at its first request.
    this.#mayBeOfHandler = ofRoute === undefined
    soon(() => {
      this.#mayBeOfHandler = wasCreatedInHandler(limiter)
    })
  }

  get steps(): readonly DecisionStep[] {
    return this.limiter.steps
  }

  get reservations(): Guard<Request>["reservations"] {
    return this.limiter.reservations
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
    return this.decide(this.requestAt(facts, request, response, step))
  }

  #noteCreation(): void {
    // Stop watching at the limiter's second request, because a handler that creates limiters sends only one request
    // to each.
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

  reportStatus(request: Request, status: number): void {
    for (let mount = (request as Marked<MountOutcome>)[MARK]; mount !== undefined; mount = mount.earlier) {
      if (!this.limiter.isRelatedTo(mount.limiter) || mount.isReported) continue
      mount.isReported = true
      // A refused request may have taken units at earlier steps. These units stay taken.
      if (this.#refunds(request, status) && mount.own.allowed) this.limiter.refundInBackground(mount.own)
    }
  }

  holdsPermits(request: Request): boolean {
    let mount = (request as Marked<MountOutcome>)[MARK]
    for (; mount !== undefined; mount = mount.earlier) {
      if (HoldingDecision.holds(mount.own) && this.limiter.isRelatedTo(mount.limiter)) return true
    }
    return false
  }

  release(request: Request): void {
    for (let mount = (request as Marked<MountOutcome>)[MARK]; mount !== undefined; mount = mount.earlier) {
      if (this.limiter.isRelatedTo(mount.limiter)) this.limiter.releaseInBackground(mount.own)
    }
  }

  forRoute(written: unknown, route: GuardedRoute): Guard<Request> {
    if (this.#closed) throw new ClosedError("The guard has been closed.")
    return readRouteRule(written, route, (rule) => this.#forRule(rule))
  }

  without(rules: readonly string[]): Guard<Request> {
    const { onRejected, isMeant } = this.#ofRoute ?? {}
    return new LimiterGuard(this.limiter, ignore, this.throws, {
      draining: this.#draining,
      onRejected,
      isMeant: (check) => !rules.includes(check.policy.name) && isMeant?.(check) !== false,
    })
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
    const guard = new LimiterGuard(limiter, leave, this.throws, {
      draining: this.#draining,
      onRejected,
      isMeant,
    })
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
    // Closing the guard of one route must not release requests that other guards hold.
    if (this.#ofRoute === undefined) this.drain()
    for (const route of this.#routes) await route.close()
    await this.#leave()
  }
}
