import type { Decision } from "../../decision/decision.ts"
import type { Ask, Look } from "../../decision/rule-check.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import type { CounterKey } from "../../stores/store.ts"

/** Who decides: as a Decider does, `take` and `peek` never throwing and never rejecting. */
export interface Deciding {
  take(asks: readonly Ask[]): MaybePromise<Decision>
  /** The same, without counting a refusal where refusals count. `look` sees the store's answer. */
  takeIfItFits(asks: readonly Ask[], look?: Look): MaybePromise<Decision>
  peek(asks: readonly Ask[]): MaybePromise<Decision>
  /**
   * Gives back what was taken from the counters that are meant, the others another time. Returns those that have more units
   * now. Never rejects.
   */
  refundInBackground(
    decision: Decision,
    isMeant: (counter: CounterKey) => boolean,
  ): Promise<readonly CounterKey[]>
}

/** Calls back with the decision, at once where it is there. */
export function whenDecided(decision: MaybePromise<Decision>, then: (decision: Decision) => void): void {
  if (decision instanceof Promise) void decision.then(then)
  else then(decision)
}
