import { algorithmOf } from "../algorithms/kinds.ts"
import { answerOf, type Taken } from "../stores/counters.ts"
import type { Decision, Refusal } from "./decision.ts"
import type { Deciding } from "./decision-record.ts"
import { type Left, leftOf, retryAfterMs } from "./explain.ts"
import { explainAnswer } from "./explain-answer.ts"
import type { Ask } from "./rule-check.ts"

/**
 * What a memory store has answered to one ask: a decision once somebody looks at it, always the same one. Many apps look at
 * none, and making one is much of the code that a request passes (docs/decisions/0027).
 */
export class LateDecision {
  // No private names in here, and no fields but by the constructor: one is made for each request.
  declare readonly allowed: boolean
  /** What its decision tells in `retryAfterMs`. */
  declare readonly retryAfterMs: number
  declare readonly ask: Ask
  /** Its decision, once somebody has looked at it. */
  declare made: Decision | undefined
  declare private readonly by: Deciding
  declare private readonly asks: readonly Ask[]
  declare private readonly taken: Taken

  /** `taken` is what became of `ask`, the only one of `asks`, which only its counter can refuse. */
  constructor(by: Deciding, ask: Ask, asks: readonly Ask[], taken: Taken) {
    this.allowed = taken.granted
    // Stryker disable next-line ConditionalExpression: of other rules what it tells is the same, worked out once more
    this.retryAfterMs = ask.throttle.kind === "elastic" ? elasticWaitMs(ask, taken) : taken.retryAfterMs
    this.ask = ask
    this.by = by
    this.asks = asks
    this.taken = taken
    this.made = undefined
  }

  /** The same of `refusal`: of one counter there is one. */
  get refusal(): Refusal | undefined {
    return this.allowed ? undefined : "quota"
  }

  /** What its decision's check tells in `remaining` and `nextUnitAfterMs`. */
  get left(): Left {
    const { policy } = this.ask
    const { state, nowMs } = this.taken
    const algorithm = algorithmOf(policy)
    return leftOf(algorithm, policy, state, algorithm.used(state, policy, nowMs), nowMs)
  }

  get decision(): Decision {
    const { asks, by, taken } = this
    // Sound, so there is one.
    this.made ??= explainAnswer(answerOf(taken), asks, asks, false, by, undefined) as Decision
    return this.made
  }
}

/** What is told under elastic throttling is not what the policy of the moment says, which the store goes by. */
function elasticWaitMs(ask: Ask, { granted, state, nowMs }: Taken): number {
  return granted ? 0 : retryAfterMs(ask, state, nowMs)
}

/** A decision, or what becomes one when somebody looks at it. */
export type Verdict = Decision | LateDecision

export function decisionOf(verdict: Verdict): Decision {
  return verdict instanceof LateDecision ? verdict.decision : verdict
}
