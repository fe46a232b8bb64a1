import { RULES_MISSING, type RuleCheck } from "../../decision/rule-check.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { Callback } from "../callbacks/callback.ts"
import { type Amounts, CallbackResults } from "../callbacks/callback-results.ts"
import type { RuleSet } from "../rule-set/rule-set.ts"
import { ALL_STEPS, type StepSet } from "../rule-set/steps.ts"

/** The rules under which a request is decided. If the scope is undefined, all rules apply. */
export interface Scope {
  readonly steps: StepSet
  /**
   * Returns whether a check is still necessary, because no other mount has made it. Undefined if no other mount has
   * decided the request.
   */
  readonly isLeft: ((ruleCheck: RuleCheck) => boolean) | undefined
  /** True if the store did not respond at an earlier step of the request. A request waits for the store only once. */
  readonly isStoreGone?: boolean
}

/** A counted request, with its checks under the rules that were in force when this object was created. */
export class PreparedRequest<Request> extends CallbackResults<Request> {
  // One object is created per request. For speed, it has no private names, and only the constructor adds fields.
  declare readonly facts: RequestFacts
  /** Units of the request. Final once none of the app's functions is pending. */
  declare units: number
  declare readonly scope: Scope | undefined
  /** Time at which the call began. Undefined if the "decision" event has no listener, or if the caller emits it. */
  declare readonly startedMs: number | undefined
  declare readonly ruleSet: RuleSet
  /** Checks of the request. Final once none of the app's functions is pending. */
  declare ruleChecks: readonly RuleCheck[]
  declare private readonly rules: { readonly current: RuleSet }

  constructor(
    rules: { readonly current: RuleSet },
    facts: RequestFacts,
    request: Request,
    amounts: Amounts | undefined,
    cost: number | Callback<number>,
    scope: Scope | undefined,
    startedMs: number | undefined,
    known?: CallbackResults,
  ) {
    super(request, amounts, known)
    this.rules = rules
    this.facts = facts
    this.scope = scope
    this.startedMs = startedMs
    this.ruleSet = rules.current
    this.check(cost)
  }

  /** True if the store did not respond at an earlier step of the request. */
  get isStoreGone(): boolean {
    return this.scope?.isStoreGone === true
  }

  /**
   * Returns a copy of this request with its checks under the current rules. Returns undefined if these checks are
   * pending. The checks are pending if they call one of the app's functions for the first time and this function
   * returns a promise.
   */
  renewed(): PreparedRequest<Request> | undefined {
    const { rules, facts, request, amounts, units, scope, startedMs } = this
    const renewed = new PreparedRequest(rules, facts, request, amounts, units, scope, startedMs, this)
    return renewed.isPending ? undefined : renewed
  }

  /** Waits until the app's functions have settled, and returns this request with its final checks. */
  async settled(cost: number | Callback<number>): Promise<this> {
    await this.complete(() => this.check(cost))
    return this
  }

  private check(cost: number | Callback<number>): void {
    const { ruleSet, facts, scope } = this
    const units = typeof cost === "number" ? cost : (this.resultOf(cost) ?? 1)
    const ruleChecks = ruleSet.ruleChecks(facts, this, units, scope === undefined ? ALL_STEPS : scope.steps)
    this.units = units
    this.ruleChecks =
      scope?.isLeft === undefined || ruleChecks === RULES_MISSING
        ? ruleChecks
        : ruleChecks.filter(scope.isLeft)
  }
}
