import { penalty } from "../algorithms/penalty.ts"
import type { Policy } from "../ground/policy.ts"
import type { Check, CounterKey, Store } from "../stores/store.ts"

/** The longest time for which a client can be blocked: a leap year. */
export const LONGEST_BLOCK_MS: number = 366 * 24 * 60 * 60 * 1_000

/** How often a shared store is asked whether other processes have blocked clients. */
const INTERVAL_MS = 1_000

/**
 * Knows whether a client of a service may be blocked, so that decisions look for blocks only then. Blocking a client marks a counter
 * of the service. While decisions are made, the mark is read after the first of them and then once a second. In a store that is not
 * shared, the mark is read only after a block began here.
 */
export class BlockWatch {
  /** The counter that is marked: blocked until the last block of the service ends. */
  readonly counter: CounterKey
  /** Whether decisions have to look for blocks. */
  isOn = false
  readonly #store: Store
  readonly #storeTimeoutMs: number
  /** When the mark is read next, by the store's clock. Undefined until the first decision. */
  #nextMs: number | undefined
  /** Blocks that began here. */
  #begun = 0

  constructor(policy: Policy, store: Store, storeTimeoutMs: number) {
    this.counter = { policy, partition: "" }
    this.#store = store
    this.#storeTimeoutMs = storeTimeoutMs
  }

  /** The store has answered a decision at this time, so it can be asked: one that is gone gets no more calls than without this. */
  answered(nowMs: number): void {
    const nextMs = this.#nextMs
    // A clock that went back does not put off the next reading.
    if (nextMs !== undefined && nowMs < nextMs && nowMs >= nextMs - INTERVAL_MS) return
    this.#nextMs = nowMs + INTERVAL_MS
    if (this.isOn || this.#store.isShared === true) void this.#read()
  }

  /** A client was blocked here, and the counter is marked. */
  began(): void {
    this.#begun++
    this.isOn = true
  }

  /** Never rejects: a failure is reported by decisions, and the mark is read again in a second. */
  async #read(): Promise<void> {
    const { policy } = this.counter
    const check: Check = { ...this.counter, cost: 1, shadow: false }
    const begun = this.#begun
    try {
      const [answer] = await this.#store.peek([[check]], this.#storeTimeoutMs)
      // What was read before a block began here does not end it.
      if (answer === undefined || begun !== this.#begun) return
      const { nowMs, checks } = answer
      const state = penalty.at(checks[0]?.state, policy, nowMs)
      this.isOn = penalty.retryAfterMs(state, policy, 1, nowMs) > 0
    } catch {}
  }
}
