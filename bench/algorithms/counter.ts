import { type MemoryStore, memoryStore } from "@sluice/core"
import type { CounterState, Policy } from "@sluice/core/stores"

/**
 * A time at which a window starts for every window length up to 16 ms and every usual length, because it is a
 * multiple of them.
 */
export const START_MS: number = 720_720 * 2_000_000

/** A single client's counter in a memory store. Its methods receive the time as an argument. */
export class Counter {
  readonly #policy: Policy
  readonly #store: MemoryStore
  #nowMs = START_MS

  constructor(policy: Policy) {
    this.#policy = policy
    this.#store = memoryStore({ clock: { now: () => this.#nowMs } })
  }

  /** Takes `cost` units at `nowMs`. Returns whether the units were granted, and the state of the counter afterwards. */
  take(nowMs: number, cost: number): { readonly granted: boolean; readonly state: CounterState } {
    this.#nowMs = nowMs
    const answer = this.#store.take([{ policy: this.#policy, partition: "client", cost, shadow: false }])
    const counted = answer?.checks[0]
    if (answer === undefined || counted === undefined) throw new Error("The store gave no answer")
    return { granted: answer.granted, state: counted.state }
  }

  /** Deletes the counter, so that the next call may use an earlier time. */
  reset(): void {
    this.#store.reset([{ policy: this.#policy, partition: "client" }])
  }
}
