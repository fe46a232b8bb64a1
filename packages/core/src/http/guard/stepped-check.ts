import type { Decision } from "../../decision/decision.ts"
import { DecisionRecord, UNLIMITED } from "../../decision/decision-record.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import type { Held } from "../../limiter/hold.ts"
import type { DecisionCall } from "../../limiter/limiter.ts"
import { MARK, type Marked } from "../../limiter/mount-decision.ts"
import type { Part, PreparedRequest } from "../../limiter/prepared-request.ts"
import type { RequestLimiter } from "../../limiter/request-limiter.ts"
import { type DecisionStep, NO_STEPS, stepsUpTo } from "../../limiter/rule-set/steps.ts"
import type { RequestFacts } from "../../request/request.ts"
import { type ClosingResponse, clientOf } from "../client-gone.ts"
import { decidedBefore, leftBy } from "./earlier-mounts.ts"
import { type DecidingMount, MountOutcome, type Outcome, type Progress } from "./mount-outcome.ts"
import { warnSameNames } from "./mount-warnings.ts"
import { StepReport } from "./step-report.ts"

const NONE: readonly never[] = []
const LAST: DecisionStep = "app"

/** A request at one step. */
interface AtStep<Request> {
  readonly facts: RequestFacts
  readonly request: Request
  /** The newest outcome of all mounts. */
  readonly newest: MountOutcome | undefined
  /** The outcome of this mount's earlier steps. */
  readonly own: MountOutcome | undefined
  readonly progress: Progress
  readonly response: ClosingResponse | undefined
  /** Undefined if nothing listens to decisions. */
  readonly call: StepCall | undefined
}

/** What is reported about the decision of one step. */
interface StepCall {
  readonly startedMs: number
  readonly counters: DecisionCall["counters"]
}

/** Decides requests for one mount in several steps. Each step uses the rules that have become decidable. */
export class SteppedCheck<Request extends object> {
  readonly #mount: DecidingMount
  readonly #limiter: RequestLimiter<Request>
  readonly #draining: AbortSignal

  constructor(mount: DecidingMount & { readonly limiter: RequestLimiter<Request> }, draining: AbortSignal) {
    this.#mount = mount
    this.#limiter = mount.limiter
    this.#draining = draining
  }

  /**
   * Decides by the rules of this step and by those that earlier steps have left. Returns undefined if the client has
   * gone while its request was held.
   */
  check(
    facts: RequestFacts,
    request: Request,
    response: ClosingResponse | undefined,
    step: DecisionStep,
  ): MaybePromise<Outcome | undefined> {
    const { ruleSet, admission, firstRules } = this.#limiter
    // Apply `skip` (health checks) even before the first rules have loaded.
    if (firstRules !== undefined && admission.counts(request)) {
      return firstRules.then(() => this.check(facts, request, response, step))
    }
    const newest = (request as Marked<MountOutcome>)[MARK]
    const own = this.#ownOutcome(newest)
    const passed = stepsUpTo(step)
    // The decided steps only hold for their own rule set. After a rule change, `isLeft` finds
    // the remaining rules by name.
    const steps = own?.progress?.ruleSet === ruleSet ? passed & ~own.progress.steps : passed
    const isNothingLeft = (ruleSet.steps & steps) === NO_STEPS
    if (isNothingLeft && (newest !== undefined || step !== LAST)) {
      return { decision: newest?.decision ?? UNLIMITED, headers: NONE, removed: NONE }
    }
    const isLeft = newest && leftBy(this.#limiter, newest)
    const part: Part = {
      steps,
      isLeft,
      isStoreGone: own !== undefined && DecisionRecord.isWithoutStore(own.own),
      isReportedLater: true,
    }
    const startedMs = admission.decisionEvents.start()
    // While the first rules load, only a request that is not counted comes here. Otherwise `prepare` returns no promise.
    const prepared =
      firstRules === undefined
        ? (admission.prepare(facts, request, undefined, part) as PreparedRequest<Request> | undefined)
        : undefined
    if (own === undefined && prepared?.isDecided === true) {
      return decidedBefore(this.#limiter, newest as MountOutcome, ruleSet)
    }
    const progress = { by: this, ruleSet, steps: passed, report: own?.progress?.report }
    const call = startedMs === undefined ? undefined : { startedMs, counters: prepared?.ruleChecks ?? NONE }
    const at = { facts, request, newest, own, progress, response, call }
    if (prepared !== undefined && (ruleSet.holding & steps) !== NO_STEPS) {
      const held = admission.hold(prepared, { client: clientOf(response), draining: this.#draining })
      return held instanceof Promise
        ? held.then((made) => this.#concludeHeld(made, at))
        : this.#concludeHeld(held, at)
    }
    const decision = admission.take(prepared)
    return decision instanceof Promise
      ? decision.then((made) => this.#conclude(made, at))
      : this.#conclude(decision, at)
  }

  #ownOutcome(newest: MountOutcome | undefined): MountOutcome | undefined {
    for (let mount = newest; mount !== undefined; mount = mount.earlier) {
      if (mount.progress?.by === this) return mount
    }
    return undefined
  }

  #concludeHeld(held: Held | undefined, at: AtStep<Request>): Outcome | undefined {
    if (held === undefined) {
      if (at.own !== undefined) this.#limiter.refundInBackground(at.own.own)
      return undefined
    }
    const { decision, ruleSet, ruleChecks } = held
    const progress = { ...at.progress, ruleSet }
    const call = at.call && { ...at.call, counters: ruleChecks }
    return this.#conclude(decision, { ...at, progress, call }, true)
  }

  #conclude(decision: Decision, at: AtStep<Request>, isHeld = false): Outcome {
    const { facts, request, newest, own, progress } = at
    const { warner } = this.#limiter
    if (own !== undefined) {
      if (!decision.allowed) this.#limiter.refundInBackground(own.own)
      const outcome = own.advance(decision, progress, newest as MountOutcome, facts, request)
      warnSameNames(warner, own)
      this.#report(own, at, isHeld)
      return outcome
    }
    const mount = new MountOutcome(this.#mount, progress.ruleSet, decision, newest, facts, request, progress)
    warnSameNames(warner, mount)
    ;(request as Marked<MountOutcome>)[MARK] = mount
    this.#report(mount, at, isHeld)
    return mount
  }

  #report(
    mount: MountOutcome,
    { request, progress, response, call }: AtStep<Request>,
    isHeld: boolean,
  ): void {
    if (call === undefined) return
    const { decisionEvents } = this.#limiter.admission
    const report = progress.report ?? new StepReport(decisionEvents, request, response, () => mount.own)
    mount.progress = { ...progress, report }
    const isLast = (progress.ruleSet.steps & ~progress.steps) === NO_STEPS
    report.add(performance.now() - call.startedMs, call.counters, isHeld, isLast)
  }
}
