import { algorithmOf } from "../algorithms/by-name.ts"
import type { Answer, Counted, Store } from "../stores/store.ts"
import type { Ask } from "./ask.ts"
import type { Decision } from "./decision.ts"
import { type Left, leftOf } from "./explain.ts"
import { explainAnswer } from "./explain-answer.ts"

/**
 * One ask that a memory store has granted: a decision once somebody looks at it, always the same one. Many apps look at none, and
 * making one for each request is a sixth of the code that a request passes here.
 */
export class Grant {
  // No private names in here, and no fields but by the constructor: one is made for each request.
  declare readonly allowed: true
  declare readonly ask: Ask
  /** Its decision, once somebody has looked at it. */
  declare made: Decision | undefined
  declare private readonly store: Store
  declare private readonly asks: readonly Ask[]
  declare private readonly answer: Answer

  /** `answer` grants `ask`, the only one of `asks`, by a store that makes sense. */
  constructor(store: Store, ask: Ask, asks: readonly Ask[], answer: Answer) {
    this.allowed = true
    this.ask = ask
    this.store = store
    this.asks = asks
    this.answer = answer
    this.made = undefined
  }

  /** What its decision's check tells in `remaining` and `nextUnitAfterMs`. */
  get left(): Left {
    const { policy } = this.ask
    const { checks, nowMs } = this.answer
    const { state } = checks[0] as Counted
    const algorithm = algorithmOf(policy)
    return leftOf(algorithm, policy, state, algorithm.used(state, policy, nowMs), nowMs)
  }

  get decision(): Decision {
    // Sound, so there is one.
    this.made ??= explainAnswer(this.answer, this.asks, this.asks, false, this.store, undefined) as Decision
    return this.made
  }
}

/** A decision, or what becomes one when somebody looks at it. */
export type Verdict = Decision | Grant

export function decisionOf(verdict: Verdict): Decision {
  return verdict instanceof Grant ? verdict.decision : verdict
}
