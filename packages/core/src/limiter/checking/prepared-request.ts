import { RULES_MISSING, type RuleCheck } from "../../decision/rule-check.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { Callback } from "../callbacks/callback.ts"
import { CallbackResults } from "../callbacks/callback-results.ts"
import type { RuleSet } from "../rule-set/rule-set.ts"
import { ALL_STEPS, type StepSet } from "../rule-set/steps.ts"

/** The rules to decide a request by. Undefined stands for all rules. */
export interface Scope {
  readonly steps: StepSet
  /**
   * Returns whether a check still has to be made on a request that other mounts have decided. Undefined if no other
   * mount has decided it.
   */
  readonly isLeft: ((ruleCheck: RuleCheck) => boolean) | undefined
  /** True if an earlier step waited for the store without a result. A request waits for the store only once. */
  readonly isStoreGone?: boolean
}

/** A request that is counted, with its checks under the rules that are in force when this object is created. */
export class PreparedRequest<Request> extends CallbackResults<Request> {
  // For speed: one is created per request, so no private names, and only the constructor adds fields.
  declare readonly facts: RequestFacts
  /** Final once no function of the app is pending. */
  declare units: number
  declare readonly scope: Scope | undefined
  /** When the call began. Undefined if there is no listener for decisions, or if the caller reports them. */
  declare readonly startedMs: number | undefined
  declare readonly ruleSet: RuleSet
  /** Final once no function of the app is pending. */
  declare ruleChecks: readonly RuleCheck[]
  declare private readonly rules: { readonly current: RuleSet }

  constructor(
    rules: { readonly current: RuleSet },
    facts: RequestFacts,
    request: Request,
    cost: number | Callback<number>,
    scope: Scope | undefined,
    startedMs: number | undefined,
    known?: CallbackResults,
  ) {
    super(request, known)
    this.rules = rules
    this.facts = facts
    this.scope = scope
    this.startedMs = startedMs
    this.ruleSet = rules.current
    this.check(cost)
  }

  /**
   * Returns the same request with its checks under the rules that are in force now. Returns undefined if they need a
   * function of the app that returns a promise, and that has not been called for this request yet.
   */
  renewed(): PreparedRequest<Request> | undefined {
    const { rules, facts, request, units, scope, startedMs } = this
    const renewed = new PreparedRequest(rules, facts, request, units, scope, startedMs, this)
    return renewed.isPending ? undefined : renewed
  }

  /** Returns the request itself, with its final checks, when the app's functions have settled. */
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
