import { RULES_MISSING, type RuleCheck } from "../decision/rule-check.ts"
import type { RequestFacts } from "../request/request.ts"
import type { RuleSet } from "./rule-set/rule-set.ts"
import { ALL_STEPS, type StepSet } from "./rule-set/steps.ts"

/** The rules to decide a request by. Undefined stands for all rules. */
export interface Part {
  readonly steps: StepSet
  /**
   * Returns whether a check still has to be made on a request that other mounts have decided. Undefined if no other
   * mount has decided it.
   */
  readonly isLeft: ((ruleCheck: RuleCheck) => boolean) | undefined
  /** True if an earlier step waited for the store without an answer. A request waits for the store only once. */
  readonly isStoreGone?: boolean
  /** True if the caller reports the decision, together with the decisions of the other steps. */
  readonly isReportedLater?: boolean
}

/** A request that is counted, with its checks under the rules that are in force when this object is created. */
export class PreparedRequest<Request> {
  // For speed: one is created per request, so no private names, and only the constructor adds fields.
  declare readonly facts: RequestFacts
  declare readonly request: Request
  declare readonly units: number
  declare readonly part: Part | undefined
  /** When the call began. Undefined if there is no listener for decisions, or if the caller reports them. */
  declare readonly startedMs: number | undefined
  declare readonly ruleSet: RuleSet
  declare readonly ruleChecks: readonly RuleCheck[]
  declare private readonly rules: { readonly current: RuleSet }

  constructor(
    rules: { readonly current: RuleSet },
    facts: RequestFacts,
    request: Request,
    cost: number | ((request: Request) => number),
    part: Part | undefined,
    startedMs: number | undefined,
  ) {
    const units = typeof cost === "number" ? cost : cost(request)
    this.rules = rules
    this.facts = facts
    this.request = request
    this.units = units
    this.part = part
    this.startedMs = startedMs
    const { current } = rules
    this.ruleSet = current
    const ruleChecks = current.ruleChecks(facts, request, units, part === undefined ? ALL_STEPS : part.steps)
    this.ruleChecks =
      part?.isLeft === undefined || ruleChecks === RULES_MISSING ? ruleChecks : ruleChecks.filter(part.isLeft)
  }

  /** True if other mounts have decided the request by all rules of its part. */
  get isDecided(): boolean {
    return (
      this.part?.isLeft !== undefined && this.ruleChecks.length === 0 && this.ruleChecks !== RULES_MISSING
    )
  }

  /** Returns the same request with its checks under the rules that are in force now. */
  renewed(): PreparedRequest<Request> {
    return new PreparedRequest(this.rules, this.facts, this.request, this.units, this.part, this.startedMs)
  }
}
