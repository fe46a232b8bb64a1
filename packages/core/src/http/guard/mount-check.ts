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
import { type DecidingMount, MountOutcome, type Outcome, rulesDecidedBy } from "./mount-outcome.ts"
import { warnMountedTwice, warnSameNames } from "./mount-warnings.ts"
import { StepReport } from "./step-report.ts"
import { compileWriters, type Writers } from "./writers.ts"

const NONE: readonly never[] = []
const LAST: DecisionStep = "app"

/**
 * A request at a mount, and the rules that the mount checks now. The limiter has not yet checked these rules for this
 * request.
 */
export interface MountRequest<Request> extends Scope {
  readonly facts: RequestFacts
  readonly request: Request
  readonly response: ClosingResponse | undefined
  /** The step that the mount decides now. Undefined if the mount checks all rules together. */
  readonly step: DecisionStep | undefined
  /** When the decision started, by `performance.now()`. Undefined if the app does not listen to decisions. */
  readonly startedMs: number | undefined
  /** The outcome of the latest mount. */
  readonly newest: MountOutcome | undefined
  /** The outcome of this mount's earlier steps. */
  readonly own: MountOutcome | undefined
  /**
   * The names of the rules that the limiter has checked for the request. Undefined if the limiter has not decided the
   * request.
   */
  readonly decided: ReadonlySet<string> | undefined
}

/** The rules by which a request was decided. */
type DecidedBy = Pick<Held, "ruleSet" | "ruleChecks">

/**
 * The path of a request through one mount. Determines whether the request is counted, which rules check it, and its
 * outcome.
 */
export abstract class MountCheck<Request extends object> implements DecidingMount {
  readonly limiter: RequestLimiter<Request>
  abstract readonly asksApp: boolean
  readonly #draining: AbortSignal
  /** The writers for the rules of the latest decision. */
  #writers: Writers | undefined
  #writtenRules: RuleSet | undefined
  /** Returns whether the mount checks a rule. Undefined if the mount checks all rules. */
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

  /** Returns the outcome of a decision that was made together with other decisions, and stores it on the request. */
  outcomeOf(decision: Decision, ruleSet: RuleSet, facts: RequestFacts, request: Request): Outcome {
    const at = this.requestAt(facts, request, undefined, undefined)
    return this.#conclude(at, { ruleSet, ruleChecks: NONE }, decision, undefined)
  }

  protected requestAt(
    facts: RequestFacts,
    request: Request,
    response: ClosingResponse | undefined,
    step: DecisionStep | undefined,
  ): MountRequest<Request> {
    const newest = (request as Marked<MountOutcome>)[MARK]
    const own = step === undefined || newest === undefined ? undefined : newest.of(this)
    const decided = newest === undefined ? undefined : rulesDecidedBy(this.limiter, newest)
    return {
      facts,
      request,
      response,
      step,
      startedMs: this.limiter.admission.events.has("decision") ? performance.now() : undefined,
      newest,
      own,
      decided,
      steps: step === undefined ? ALL_STEPS : this.#stepsLeft(step, own),
      isLeft: decided === undefined ? this.#isMeant : this.#isLeftBy(decided),
      isStoreGone: own !== undefined && DecisionRecord.isWithoutStore(own.own),
    }
  }

  /**
   * Returns the steps whose rules are decided now. The decided steps are valid only for the rule set that decided
   * them. After a rule change, `isLeft` finds the remaining rules by name.
   */
  #stepsLeft(step: DecisionStep, own: MountOutcome | undefined): StepSet {
    const passed = stepsUpTo(step)
    return own?.ruleSet === this.limiter.ruleSet ? passed & ~own.steps : passed
  }

  /**
   * Returns a function that is true for a rule that is still to be checked. Some rules are still unchecked if the
   * request had no body or no user at an earlier mount of the limiter.
   */
  #isLeftBy(decided: ReadonlySet<string>): (ruleCheck: RuleCheck) => boolean {
    const isMeant = this.#isMeant
    return (ruleCheck) => !decided.has(ruleCheck.policy.name) && isMeant?.(ruleCheck) !== false
  }

  /**
   * Checks all rules or, with a step, the rules of this step and the rules that earlier steps left unchecked. Returns
   * undefined if the client has gone while its request was held, or while a function of the app was pending. `counts`
   * is undefined until it is known whether the request is counted.
   *
   * Units of earlier steps stay taken when a later step refuses the request or the client leaves. The rules of those
   * steps protect code that has already run, such as authentication.
   */
  protected decide(at: MountRequest<Request>, counts?: boolean): MaybePromise<Outcome | undefined> {
    const { facts, request, step, steps, newest } = at
    const { admission } = this.limiter
    const { live, current: ruleSet } = admission.rules
    const firstRules = live?.first
    if (step !== undefined && firstRules === undefined && (ruleSet.steps & steps) === NO_STEPS) {
      if (newest !== undefined || step !== LAST) return unchanged(newest)
    }
    const isCounted = counts ?? admission.counts(request)
    // Apply `skip` (health checks) even before the first rules have loaded.
    if (isCounted instanceof Promise || (isCounted && firstRules !== undefined))
      return this.#decideLater(at, isCounted)
    if (!isCounted) return this.#conclude(at, { ruleSet, ruleChecks: NONE }, UNLIMITED, undefined)
    const prepared = admission.prepareCounted(facts, request, undefined, at, undefined)
    // No closures here: they would cost the synchronous path an allocation.
    return prepared instanceof Promise ? this.#takeLater(at, prepared) : this.#take(at, prepared)
  }

  /** Decides as soon as `counts` resolves and, for a counted request, the first rules have loaded. */
  async #decideLater(at: MountRequest<Request>, counts: MaybePromise<boolean>): Promise<Outcome | undefined> {
    const isCounted = await counts
    if (isCounted) await this.limiter.admission.rules.live?.first
    if (hasLeft(at)) return undefined
    // Compute the steps again, because the rules may have changed in the meantime.
    const steps = this.#stepsLeft(at.step ?? LAST, at.own)
    return this.decide({ ...at, steps }, isCounted)
  }

  async #takeLater(
    at: MountRequest<Request>,
    prepared: Promise<PreparedRequest<Request>>,
  ): Promise<Outcome | undefined> {
    const made = await prepared
    // If the client has gone while its request was prepared, no units are taken.
    return hasLeft(at) ? undefined : this.#take(at, made)
  }

  #take(at: MountRequest<Request>, prepared: PreparedRequest<Request>): MaybePromise<Outcome | undefined> {
    if ((prepared.ruleSet.holding & at.steps) !== NO_STEPS) return this.#hold(at, prepared)
    const decision = this.limiter.admission.take(prepared)
    return decision instanceof Promise
      ? this.#concludeLater(at, prepared, decision)
      : this.#conclude(at, prepared, decision, "decide")
  }

  async #concludeLater(
    at: MountRequest<Request>,
    prepared: PreparedRequest<Request>,
    decision: Promise<Decision>,
  ): Promise<Outcome> {
    return this.#conclude(at, prepared, await decision, "decide")
  }

  #hold(at: MountRequest<Request>, prepared: PreparedRequest<Request>): MaybePromise<Outcome | undefined> {
    const outcomeOf = (held: Held | undefined): Outcome | undefined =>
      held && this.#conclude(at, held, held.decision, "hold")
    const leaving = { client: clientOf(at.response), draining: this.#draining }
    const held = this.limiter.admission.hold(prepared, leaving)
    return held instanceof Promise ? held.then(outcomeOf) : outcomeOf(held)
  }

  /**
   * Creates the outcome and stores it on the request for later mounts, or adds a step to the outcome of earlier
   * steps. Headers and refusals use the rules of the decision, because other rules may be in force by now.
   * `operation` is undefined if the request is not counted.
   */
  #conclude(
    at: MountRequest<Request>,
    { ruleSet, ruleChecks }: DecidedBy,
    decision: Decision,
    operation: DecisionCall["operation"] | undefined,
  ): Outcome {
    const { facts, request, step, newest, own } = at
    const { warner, admission } = this.limiter
    if (newest !== undefined && own === undefined && at.isLeft !== undefined && decision === UNLIMITED) {
      // If earlier mounts have checked all rules, this mount is superfluous.
      if (ruleSet.names.every((name) => at.decided?.has(name))) warnMountedTwice(warner, ruleSet.names)
      return unchanged(newest)
    }
    const steps = step === undefined ? ALL_STEPS : stepsUpTo(step)
    const mount = own ?? new MountOutcome(this, ruleSet, decision, newest, facts, request, steps)
    let outcome: Outcome = mount
    if (own === undefined) (request as Marked<MountOutcome>)[MARK] = mount
    else {
      // A refused request is not passed on, so it needs no permits. The units of its earlier steps stay taken.
      if (!decision.allowed) this.limiter.releaseInBackground(own.own)
      outcome = own.advance(decision, ruleSet, steps, newest as MountOutcome, facts, request)
    }
    if (newest !== undefined) warnSameNames(warner, mount)
    if (at.startedMs === undefined) return outcome
    if (step === undefined) {
      if (operation !== undefined) admission.tell(decision, request, operation, at.startedMs, ruleChecks)
      return outcome
    }
    mount.report ??= new StepReport(admission.events, request, at.response, mount)
    const isLast = (ruleSet.steps & ~steps) === NO_STEPS
    mount.report.add(performance.now() - at.startedMs, ruleChecks, operation === "hold", isLast)
    return outcome
  }
}

/** Returns the outcome of a mount that has nothing left to decide. */
function unchanged(newest: MountOutcome | undefined): Outcome {
  return { decision: newest?.decision ?? UNLIMITED, headers: NONE, removed: NONE }
}

function hasLeft({ response }: Pick<MountRequest<unknown>, "response">): boolean {
  return response !== undefined && hasGone(response)
}
