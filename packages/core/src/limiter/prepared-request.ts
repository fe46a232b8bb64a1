import { RULES_MISSING, type RuleCheck } from "../decision/rule-check.ts"
import type { RequestFacts } from "../request/request.ts"
import type { RuleSet } from "./rule-set/rule-set.ts"
import { ALL_STEPS, type StepSet } from "./rule-set/steps.ts"

/** Which rules to decide a request by; undefined for all of them. */
export interface Part {
  readonly steps: StepSet
  /** Whether a check is left for a request that other mounts have decided. Undefined if none has. */
  readonly isLeft: ((ruleCheck: RuleCheck) => boolean) | undefined
  /** True if an earlier step has waited for the store without an answer: a request waits for it once. */
  readonly isStoreGone?: boolean
  /** True if the caller reports the decision, together with those of the other steps. */
  readonly isReportedLater?: boolean
}

/** A request that is counted, with what it asks under the rules that are in force when this is made. */
export class PreparedRequest<Request> {
  // No private names in here, and no fields but by the constructor: one is made for each request.
  declare readonly facts: RequestFacts
  declare readonly request: Request
  declare readonly units: number
  declare readonly part: Part | undefined
  /** When the call began; undefined if nobody listens to decisions, or if the caller reports them. */
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

  /** Returns the same request with what it asks under the rules that are in force now. */
  renewed(): PreparedRequest<Request> {
    return new PreparedRequest(this.rules, this.facts, this.request, this.units, this.part, this.startedMs)
  }
}
