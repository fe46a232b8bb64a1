import { type CounterState, type MemoryStore, memoryStore, type Policy } from "@sluice/core"

/** The start of a window of any length up to 16 ms, and of any usual one: a whole multiple of them since the epoch. */
export const START_MS: number = 720_720 * 2_000_000

/** One client's counter in a memory store, at a time that is given. */
export class Counter {
  readonly #policy: Policy
  readonly #store: MemoryStore
  #nowMs = START_MS

  constructor(policy: Policy) {
    this.#policy = policy
    this.#store = memoryStore({ clock: { now: () => this.#nowMs } })
  }

  /** Whether so many units are admitted, and what the counter then holds. */
  take(nowMs: number, cost: number): { readonly granted: boolean; readonly state: CounterState } {
    this.#nowMs = nowMs
    const [answer] = this.#store.take([[{ policy: this.#policy, partition: "client", cost, shadow: false }]])
    const counted = answer?.checks[0]
    if (answer === undefined || counted === undefined) throw new Error("The store gave no answer")
    return { granted: answer.granted, state: counted.state }
  }

  /** Forgets what was taken; the time may then be an earlier one. */
  reset(): void {
    this.#store.reset([{ policy: this.#policy, partition: "client" }])
  }
}
