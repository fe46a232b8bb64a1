import type { Decision } from "../../decision/decision.ts"
import { DecisionRecord, UNLIMITED } from "../../decision/decision-record.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import type { Held } from "../../limiter/checking/hold.ts"
import type { PreparedRequest, Scope } from "../../limiter/checking/prepared-request.ts"
import type { DecisionCall } from "../../limiter/interface/limiter.ts"
import { MARK, type Marked } from "../../limiter/interface/mount-decision.ts"
import type { RequestLimiter } from "../../limiter/request-limiter.ts"
import type { RuleSet } from "../../limiter/rule-set/rule-set.ts"
import {
  ALL_STEPS,
  type DecisionStep,
  NO_STEPS,
  type StepSet,
  stepsUpTo,
} from "../../limiter/rule-set/steps.ts"
import type { RequestFacts } from "../../request/request.ts"
import { type ClosingResponse, clientOf, hasGone } from "../client-gone.ts"
import { decidedBefore, leftBy } from "./earlier-mounts.ts"
import { type DecidingMount, MountOutcome, type Outcome, type Progress } from "./mount-outcome.ts"
import { warnSameNames } from "./mount-warnings.ts"
import { StepReport } from "./step-report.ts"
import { compileWriters, type Writers } from "./writers.ts"

const NONE: readonly never[] = []
const LAST: DecisionStep = "app"

/** What a mount that decides in steps knows of a request at one step. A mount that decides by all rules at once has none. */
interface AtStep {
  /** The outcome of this mount's earlier steps. */
  readonly own: MountOutcome | undefined
  readonly progress: Progress
  /** Undefined if nothing listens to decisions. */
  readonly startedMs: number | undefined
}

/** A request and the rules by which it was decided. */
type Decided<Request> = Pick<PreparedRequest<Request>, "ruleSet" | "ruleChecks" | "facts" | "request">

/** The way of a request through one mount: whether it is counted, by which rules it is decided, and what comes of it. */
export abstract class MountCheck<Request extends object> implements DecidingMount {
  readonly limiter: RequestLimiter<Request>
  abstract readonly asksApp: boolean
  readonly #draining: AbortSignal
  /** The writers for the rules of the latest decision. */
  #writers: Writers | undefined
  #writtenRules: RuleSet | undefined
  /** Returns whether the mount decides by a rule; undefined if it decides by all rules. */
  readonly #isMeant: ((ruleCheck: RuleCheck) => boolean) | undefined

  constructor(
    limiter: RequestLimiter<Request>,
    draining: AbortSignal,
    isMeant: ((ruleCheck: RuleCheck) => boolean) | undefined,
  ) {
    this.limiter = limiter
    this.#draining = draining
    this.#isMeant = isMeant
  }

  writersFor(ruleSet: RuleSet): Writers {
    if (this.#writers === undefined || this.#writtenRules !== ruleSet) {
      this.#writers = compileWriters(ruleSet, this.limiter)
      this.#writtenRules = ruleSet
    }
    return this.#writers
  }

  /**
   * Decides by all rules, or with a step by the rules of this step and by those that earlier steps have left. Returns
   * undefined if the client has gone while its request was held, or while a function of the app was pending.
   *
   * Units of earlier steps stay taken when a later step refuses or the client leaves. Their rules protect what has run
   * since, such as authentication, and that has run.
   *
   * `counts` is undefined until it is known whether the request is counted. `began` is when the decision began.
   */
  protected decide(
    facts: RequestFacts,
    request: Request,
    response: ClosingResponse | undefined,
    step: DecisionStep | undefined,
    counts?: boolean,
    began?: number,
  ): MaybePromise<Outcome | undefined> {
    const { admission, firstRules } = this.limiter
    const startedMs = began ?? admission.decisionEvents.start()
    if (firstRules !== undefined && counts === undefined) {
      // Apply `skip` (health checks) even before the first rules have loaded.
      const isCounted = admission.counts(request)
      return isCounted === false
        ? this.decide(facts, request, response, step, false, startedMs)
        : this.#decideLater(isCounted, facts, request, response, step, startedMs)
    }
    const newest = (request as Marked<MountOutcome>)[MARK]
    let own: MountOutcome | undefined
    let steps = ALL_STEPS
    if (step !== undefined) {
      own = newest && this.#ownOutcome(newest)
      steps = this.#stepsLeft(step, own)
      if ((this.limiter.ruleSet.steps & steps) === NO_STEPS && (newest !== undefined || step !== LAST))
        return { decision: newest?.decision ?? UNLIMITED, headers: NONE, removed: NONE }
    }
    const isCounted = counts ?? admission.counts(request)
    if (isCounted instanceof Promise)
      return this.#decideLater(isCounted, facts, request, response, step, startedMs)
    const at = step === undefined ? undefined : this.#atStep(step, own, startedMs)
    if (!isCounted) return this.#uncounted(facts, request, newest, at)
    const isWhole = newest === undefined && at === undefined && this.#isMeant === undefined
    const scope = isWhole ? undefined : this.#scope(steps, newest, own)
    // The steps of a request are reported together, as one decision.
    const prepared = admission.prepareCounted(
      facts,
      request,
      undefined,
      scope,
      at === undefined ? startedMs : undefined,
    )
    // No closures here: they would cost the synchronous path an allocation.
    return prepared instanceof Promise
      ? this.#takeLater(prepared, response, newest, at)
      : this.#take(prepared, response, newest, at)
  }

  /** Decides when it is known whether the request is counted and, if so, when the first rules have loaded. */
  async #decideLater(
    counts: MaybePromise<boolean>,
    facts: RequestFacts,
    request: Request,
    response: ClosingResponse | undefined,
    step: DecisionStep | undefined,
    startedMs: number | undefined,
  ): Promise<Outcome | undefined> {
    const isCounted = await counts
    if (isCounted) await this.limiter.firstRules
    if (response !== undefined && hasGone(response)) return undefined
    return this.decide(facts, request, response, step, isCounted, startedMs)
  }

  async #takeLater(
    prepared: Promise<PreparedRequest<Request>>,
    response: ClosingResponse | undefined,
    newest: MountOutcome | undefined,
    at: AtStep | undefined,
  ): Promise<Outcome | undefined> {
    const made = await prepared
    // The client has gone while its request was prepared, so nothing is taken.
    return response !== undefined && hasGone(response) ? undefined : this.#take(made, response, newest, at)
  }

  #take(
    prepared: PreparedRequest<Request>,
    response: ClosingResponse | undefined,
    newest: MountOutcome | undefined,
    at: AtStep | undefined,
  ): MaybePromise<Outcome | undefined> {
    // The rules may change before the store answers. Headers and refusals must use the rules of the decision.
    const { ruleSet, scope } = prepared
    if (newest !== undefined && at?.own === undefined && prepared.isDecided)
      return decidedBefore(this.limiter, newest, ruleSet)
    const isHeld =
      ruleSet.holding !== NO_STEPS && (ruleSet.holding & (scope?.steps ?? ALL_STEPS)) !== NO_STEPS
    if (isHeld) return this.#hold(prepared, response, newest, at)
    const decision = this.limiter.admission.take(prepared)
    return decision instanceof Promise
      ? this.#concludeLater(decision, prepared, response, newest, at)
      : this.#conclude(decision, prepared, response, newest, at)
  }

  async #concludeLater(
    decision: Promise<Decision>,
    prepared: PreparedRequest<Request>,
    response: ClosingResponse | undefined,
    newest: MountOutcome | undefined,
    at: AtStep | undefined,
  ): Promise<Outcome> {
    return this.#conclude(await decision, prepared, response, newest, at)
  }

  #hold(
    prepared: PreparedRequest<Request>,
    response: ClosingResponse | undefined,
    newest: MountOutcome | undefined,
    at: AtStep | undefined,
  ): MaybePromise<Outcome | undefined> {
    const { facts, request, scope } = prepared
    const outcomeOf = (held: Held | undefined): Outcome | undefined => {
      if (held === undefined) return undefined
      const { decision, ruleSet } = held
      // The rules may have changed while the request was held, so that none is left to decide.
      const isDecided = at === undefined && scope !== undefined && decision === UNLIMITED
      return newest !== undefined && isDecided
        ? decidedBefore(this.limiter, newest, ruleSet)
        : this.#conclude(decision, { ...held, facts, request }, response, newest, at, true)
    }
    const leaving = { client: clientOf(response), draining: this.#draining }
    const held = this.limiter.admission.hold(prepared, leaving)
    return held instanceof Promise ? held.then(outcomeOf) : outcomeOf(held)
  }

  #uncounted(
    facts: RequestFacts,
    request: Request,
    newest: MountOutcome | undefined,
    at: AtStep | undefined,
  ): Outcome {
    const { ruleSet } = this.limiter
    return at === undefined && newest !== undefined && leftBy(this.limiter, newest) !== undefined
      ? decidedBefore(this.limiter, newest, ruleSet)
      : this.#conclude(UNLIMITED, { ruleSet, ruleChecks: NONE, facts, request }, undefined, newest, at)
  }

  /** Returns the rules to decide by, without those by which earlier mounts of this limiter have decided. */
  #scope(steps: StepSet, newest: MountOutcome | undefined, own: MountOutcome | undefined): Scope {
    const isMeant = this.#isMeant
    const isUndecided = newest && leftBy(this.limiter, newest)
    const isLeft =
      isMeant !== undefined && isUndecided !== undefined
        ? (ruleCheck: RuleCheck): boolean => isMeant(ruleCheck) && isUndecided(ruleCheck)
        : (isMeant ?? isUndecided)
    return { steps, isLeft, isStoreGone: own !== undefined && DecisionRecord.isWithoutStore(own.own) }
  }

  #atStep(step: DecisionStep, own: MountOutcome | undefined, startedMs: number | undefined): AtStep {
    const { ruleSet } = this.limiter
    const progress = { by: this, ruleSet, steps: stepsUpTo(step), report: own?.progress?.report }
    return { own, progress, startedMs }
  }

  /**
   * Returns the steps whose rules are decided now. The decided steps only hold for their own rule set. After a rule
   * change, `isLeft` finds the remaining rules by name.
   */
  #stepsLeft(step: DecisionStep, own: MountOutcome | undefined): StepSet {
    const passed = stepsUpTo(step)
    return own?.progress?.ruleSet === this.limiter.ruleSet ? passed & ~own.progress.steps : passed
  }

  #ownOutcome(newest: MountOutcome): MountOutcome | undefined {
    for (let mount: MountOutcome | undefined = newest; mount !== undefined; mount = mount.earlier) {
      if (mount.progress?.by === this) return mount
    }
    return undefined
  }

  /** Returns the outcome of a decision that was made together with others, and keeps it on the request. */
  outcomeOf(decision: Decision, ruleSet: RuleSet, facts: RequestFacts, request: Request): Outcome {
    const newest = (request as Marked<MountOutcome>)[MARK]
    return this.#conclude(
      decision,
      { ruleSet, ruleChecks: NONE, facts, request },
      undefined,
      newest,
      undefined,
    )
  }

  /** Creates the outcome and keeps it on the request for later mounts, or adds a step to the outcome of earlier ones. */
  #conclude(
    decision: Decision,
    { ruleSet, ruleChecks, facts, request }: Decided<Request>,
    response: ClosingResponse | undefined,
    newest: MountOutcome | undefined,
    at: AtStep | undefined,
    isHeld = false,
  ): Outcome {
    const progress = at && { ...at.progress, ruleSet }
    const mount = at?.own ?? new MountOutcome(this, ruleSet, decision, newest, facts, request, progress)
    let outcome: Outcome = mount
    if (at?.own === undefined) (request as Marked<MountOutcome>)[MARK] = mount
    else outcome = mount.advance(decision, progress as Progress, newest as MountOutcome, facts, request)
    if (newest !== undefined) warnSameNames(this.limiter.warner, mount)
    if (at?.startedMs !== undefined) this.#report(mount, ruleChecks, request, response, at.startedMs, isHeld)
    return outcome
  }

  #report(
    mount: MountOutcome,
    counters: DecisionCall["counters"],
    request: Request,
    response: ClosingResponse | undefined,
    startedMs: number,
    isHeld: boolean,
  ): void {
    const { decisionEvents } = this.limiter.admission
    const progress = mount.progress as Progress
    const report = progress.report ?? new StepReport(decisionEvents, request, response, () => mount.own)
    mount.progress = { ...progress, report }
    const isLast = (progress.ruleSet.steps & ~progress.steps) === NO_STEPS
    report.add(performance.now() - startedMs, counters, isHeld, isLast)
  }
}
