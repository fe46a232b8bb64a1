import { penalty } from "../algorithms/penalty.ts"
import type { Policy } from "../ground/policy.ts"
import type { Check, CounterKey, Store } from "../stores/store.ts"

/** The longest time for which a client can be blocked: a leap year. */
export const LONGEST_BLOCK_MS: number = 366 * 24 * 60 * 60 * 1_000

/**
 * The interval, in milliseconds, at which a shared store is read to detect clients that other processes have blocked.
 */
const INTERVAL_MS = 1_000

/** Whether clients of a service may be blocked, so that decisions have to check for blocks. */
export interface BlockState {
  isOn: boolean
}

/**
 * Watches the blocks of a service, so that decisions check for blocks only while a client may be blocked. Blocking a
 * client also marks one counter of the service. A decision triggers a read of that mark, at most once a second. If
 * the store is not shared, the mark is read only after a block began in this process.
 */
export class BlockWatch {
  /** The counter that stores the mark. The counter stays blocked until the last block of the service ends. */
  readonly counter: CounterKey
  readonly #blocks: BlockState
  readonly #store: Store
  readonly #storeTimeoutMs: number
  /** When the mark is read next, by the store's clock. Undefined until the first decision. */
  #nextMs: number | undefined
  /** Number of blocks that began in this process. */
  #begun = 0

  constructor(blocks: BlockState, policy: Policy, store: Store, storeTimeoutMs: number) {
    this.counter = { policy, partition: "" }
    this.#blocks = blocks
    this.#store = store
    this.#storeTimeoutMs = storeTimeoutMs
  }

  /**
   * Reads the mark if it is due. Called when the store has responded to a decision, so a store that is down receives
   * no extra calls. `nowMs` is the time by the store's clock.
   */
  answered(nowMs: number): void {
    const nextMs = this.#nextMs
    // A clock that jumps back must not delay the next read.
    if (nextMs !== undefined && nowMs < nextMs && nowMs >= nextMs - INTERVAL_MS) return
    this.#nextMs = nowMs + INTERVAL_MS
    if (this.#blocks.isOn || this.#store.isShared === true) void this.#read()
  }

  /** Turns the watch on. Called when this process has blocked a client and marked the counter. */
  began(): void {
    this.#begun++
    this.#blocks.isOn = true
  }

  /**
   * Reads the mark. Never rejects, because decisions report store failures and the mark is read again a second later.
   */
  async #read(): Promise<void> {
    const { policy } = this.counter
    const check: Check = { ...this.counter, cost: 1, shadow: false }
    const begun = this.#begun
    try {
      const { nowMs, counters } = await this.#store.read([check], this.#storeTimeoutMs)
      // If a block began in this process during the read, the result is stale and must not turn the watch off.
      if (begun !== this.#begun) return
      const state = penalty.at(counters[0]?.state, policy, nowMs)
      this.#blocks.isOn = penalty.retryAfterMs(state, policy, 1, nowMs) > 0
    } catch {}
  }
}
