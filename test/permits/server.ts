import type { CounterState } from "../../packages/core/src/algorithms/algorithm.ts"
import { Counter } from "../../packages/core/src/algorithms/testing/counter-story.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import type { CounterKey, Refund } from "../../packages/core/src/stores/store.ts"

/** The length of a part: half of H. */
export const PART_MS = 1_000

const PERMITS: Policy = {
  name: "permits",
  counter: "permits",
  algorithm: "in-flight",
  limit: Number.MAX_SAFE_INTEGER,
  windowMs: PART_MS,
  align: "epoch",
}

/** The counter of permits in the store, which the pure functions of the algorithm change. */
export class Server {
  readonly startsMs: number = Date.UTC(2024, 0, 1)
  readonly counter: CounterKey = { policy: PERMITS, partition: "" }
  readonly #counter = new Counter(PERMITS)

  /** Takes a permit. Returns the start of the part in which it is counted, or undefined for a refusal. */
  take(storeMs: number, limit: number): number | undefined {
    const { algorithm } = this.#counter
    const state = this.look(storeMs)
    if (!algorithm.admits(state, { ...PERMITS, limit }, 1, storeMs)) return undefined
    return this.#counter.charge(storeMs, 1).startMs
  }

  refund(storeMs: number, refunds: readonly Refund[]): void {
    for (const { units, after } of refunds) this.#counter.refund(storeMs, units, this.partOf(storeMs, after))
  }

  look(storeMs: number): CounterState {
    return this.#counter.look(storeMs)
  }

  counted(storeMs: number): number {
    return this.#counter.used(storeMs)
  }

  /** The part of which a refund speaks. */
  protected partOf(_storeMs: number, after: CounterState): CounterState {
    return after
  }
}

/** A wrong server, on which a release of ended permits takes permits of others from the oldest part. */
export class ForgetfulServer extends Server {
  protected override partOf(storeMs: number, after: CounterState): CounterState {
    return { ...after, startMs: Math.max(after.startMs, this.look(storeMs).startMs - PART_MS) }
  }
}
