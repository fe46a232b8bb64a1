import type { Decision } from "../../decision/decision.ts"
import { DecisionRecord, UNLIMITED } from "../../decision/decision-record.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import type { Held } from "../../limiter/hold.ts"
import type { DecisionCall } from "../../limiter/limiter.ts"
import { MARK, type Marked } from "../../limiter/mount-decision.ts"
import type { Part, PreparedRequest } from "../../limiter/prepared-request.ts"
import type { RequestLimiter } from "../../limiter/request-limiter.ts"
import { type DecisionStep, NO_STEPS, type StepSet, stepsUpTo } from "../../limiter/rule-set/steps.ts"
import type { RequestFacts } from "../../request/request.ts"
import { type ClosingResponse, clientOf, hasGone } from "../client-gone.ts"
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
  /** The steps whose rules are decided now. */
  readonly steps: StepSet
  readonly progress: Progress
  readonly response: ClosingResponse | undefined
  /** Undefined if nothing listens to decisions. */
  readonly startedMs: number | undefined
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
   * gone while its request was held, or while a function of the app was pending.
   *
   * Units of earlier steps stay taken when a later step refuses or the client leaves. Their rules protect what has run
   * since, such as authentication, and that has run.
   */
  check(
    facts: RequestFacts,
    request: Request,
    response: ClosingResponse | undefined,
    step: DecisionStep,
  ): MaybePromise<Outcome | undefined> {
    const { admission, firstRules } = this.#limiter
    if (firstRules === undefined) return this.#check(facts, request, response, step)
    // Apply `skip` (health checks) even before the first rules have loaded.
    const counts = admission.counts(request)
    return counts === false
      ? this.#check(facts, request, response, step, undefined, false)
      : this.#checkLater(firstRules, counts, facts, request, response, step)
  }

  /** `counts` is undefined until it is known whether the request is counted. */
  #check(
    facts: RequestFacts,
    request: Request,
    response: ClosingResponse | undefined,
    step: DecisionStep,
    began?: number,
    counts?: boolean,
  ): MaybePromise<Outcome | undefined> {
    const { ruleSet, admission } = this.#limiter
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
    const startedMs = began ?? admission.decisionEvents.start()
    const isCounted = counts ?? admission.counts(request)
    if (isCounted instanceof Promise)
      return this.#checkLater(undefined, isCounted, facts, request, response, step, startedMs)
    const part: Part = {
      steps,
      isLeft: newest && leftBy(this.#limiter, newest),
      isStoreGone: own !== undefined && DecisionRecord.isWithoutStore(own.own),
    }
    // The decision is reported here, together with those of the other steps.
    const prepared = isCounted
      ? admission.prepareCounted(facts, request, undefined, part, undefined)
      : undefined
    const progress = { by: this, ruleSet, steps: passed, report: own?.progress?.report }
    const at = { facts, request, newest, own, steps, progress, response, startedMs }
    return prepared instanceof Promise ? this.#decideLater(prepared, at) : this.#decide(prepared, at)
  }

  /** Checks the request when it is known whether it is counted and, if so, when the first rules have loaded. */
  async #checkLater(
    firstRules: Promise<void> | undefined,
    counts: MaybePromise<boolean>,
    facts: RequestFacts,
    request: Request,
    response: ClosingResponse | undefined,
    step: DecisionStep,
    startedMs?: number,
  ): Promise<Outcome | undefined> {
    const isCounted = await counts
    if (isCounted) await firstRules
    if (response !== undefined && hasGone(response)) return undefined
    return this.#check(facts, request, response, step, startedMs, isCounted)
  }

  async #decideLater(
    prepared: Promise<PreparedRequest<Request>>,
    at: AtStep<Request>,
  ): Promise<Outcome | undefined> {
    const made = await prepared
    return at.response !== undefined && hasGone(at.response) ? undefined : this.#decide(made, at)
  }

  #decide(
    prepared: PreparedRequest<Request> | undefined,
    at: AtStep<Request>,
  ): MaybePromise<Outcome | undefined> {
    const { admission } = this.#limiter
    const { newest, own, steps, response, progress } = at
    if (own === undefined && prepared?.isDecided === true) {
      return decidedBefore(this.#limiter, newest as MountOutcome, progress.ruleSet)
    }
    const counters = prepared?.ruleChecks ?? NONE
    if (prepared !== undefined && (progress.ruleSet.holding & steps) !== NO_STEPS) {
      const held = admission.hold(prepared, { client: clientOf(response), draining: this.#draining })
      return held instanceof Promise
        ? held.then((made) => this.#concludeHeld(made, at))
        : this.#concludeHeld(held, at)
    }
    const decision = admission.take(prepared)
    return decision instanceof Promise
      ? decision.then((made) => this.#conclude(made, counters, at))
      : this.#conclude(decision, counters, at)
  }

  #ownOutcome(newest: MountOutcome | undefined): MountOutcome | undefined {
    for (let mount = newest; mount !== undefined; mount = mount.earlier) {
      if (mount.progress?.by === this) return mount
    }
    return undefined
  }

  #concludeHeld(held: Held | undefined, at: AtStep<Request>): Outcome | undefined {
    if (held === undefined) return undefined
    const { decision, ruleSet, ruleChecks } = held
    return this.#conclude(decision, ruleChecks, { ...at, progress: { ...at.progress, ruleSet } }, true)
  }

  #conclude(
    decision: Decision,
    counters: DecisionCall["counters"],
    at: AtStep<Request>,
    isHeld = false,
  ): Outcome {
    const { facts, request, newest, own, progress } = at
    const { warner } = this.#limiter
    if (own !== undefined) {
      const outcome = own.advance(decision, progress, newest as MountOutcome, facts, request)
      warnSameNames(warner, own)
      this.#report(own, counters, at, isHeld)
      return outcome
    }
    const mount = new MountOutcome(this.#mount, progress.ruleSet, decision, newest, facts, request, progress)
    warnSameNames(warner, mount)
    ;(request as Marked<MountOutcome>)[MARK] = mount
    this.#report(mount, counters, at, isHeld)
    return mount
  }

  #report(
    mount: MountOutcome,
    counters: DecisionCall["counters"],
    { request, progress, response, startedMs }: AtStep<Request>,
    isHeld: boolean,
  ): void {
    if (startedMs === undefined) return
    const { decisionEvents } = this.#limiter.admission
    const report = progress.report ?? new StepReport(decisionEvents, request, response, () => mount.own)
    mount.progress = { ...progress, report }
    const isLast = (progress.ruleSet.steps & ~progress.steps) === NO_STEPS
    report.add(performance.now() - startedMs, counters, isHeld, isLast)
  }
}
