import type { CounterState } from "../algorithms/algorithm.ts"
import type { Answer } from "./store.ts"

/** What became of one check: an answer in one piece, since one is made for each request. */
export interface Taken {
  /** Epoch milliseconds of the decision. */
  readonly nowMs: number
  readonly granted: boolean
  /** What the counter holds afterwards. */
  readonly state: CounterState
  /** Units that the check took. */
  readonly taken: number
  /** Milliseconds that who is refused waits, by the policy of the check; 0 when it is granted. */
  readonly retryAfterMs: number
}

/** The same, as a store tells it. */
export function answerOf({ nowMs, granted, state, taken }: Taken): Answer {
  return { nowMs, granted, checks: [{ state, taken }] }
}
