import { penalty } from "../algorithms/penalty.ts"
import type { Clock } from "../clock.ts"
import type { Policy } from "../policy.ts"
import type { Check, CounterKey, Store } from "../stores/store.ts"

/** The longest time for which a client can be blocked: a leap year. */
export const LONGEST_BLOCK_MS: number = 366 * 24 * 60 * 60 * 1_000

/** How often a shared store is asked whether other processes have blocked clients. */
const INTERVAL_MS = 1_000

/**
 * Knows whether a client of a service may be blocked, so that decisions look for blocks only then. Other processes mark a counter
 * of the service when they block a client. It is read once a second while decisions are made, from a second after the first one.
 */
export class BlockWatch {
  /** The counter that is marked: blocked until the last block of the service ends. */
  readonly counter: CounterKey
  /** Whether decisions have to look for blocks. */
  isOn = false
  readonly #store: Store
  readonly #storeTimeoutMs: number
  readonly #clock: Clock
  #endsMs = Number.NEGATIVE_INFINITY
  /** Undefined until the first decision. */
  #nextMs: number | undefined
  #isDue = false

  constructor(policy: Policy, store: Store, storeTimeoutMs: number, clock: Clock) {
    this.counter = { policy, partition: "" }
    this.#store = store
    this.#storeTimeoutMs = storeTimeoutMs
    this.#clock = clock
  }

  /** Brings `isOn` up to date. Called before each decision. */
  update(): void {
    const isShared = this.#store.isShared === true
    if (!isShared && !this.isOn) return
    const nowMs = this.#clock.now()
    if (nowMs >= this.#endsMs) this.isOn = false
    if (!isShared || (this.#nextMs !== undefined && nowMs < this.#nextMs)) return
    this.#isDue = this.#nextMs !== undefined
    this.#nextMs = nowMs + INTERVAL_MS
  }

  /** The store has answered a decision, so it can be asked: one that is gone gets no more calls than without this. */
  answered(): void {
    if (!this.#isDue) return
    this.#isDue = false
    void this.#read()
  }

  /** A client was blocked for this long. */
  began(forMs: number): void {
    this.#endsMs = Math.max(this.#endsMs, this.#clock.now() + forMs)
    this.isOn = true
  }

  /** Never rejects: a failure is reported by decisions, and the counter is read again in a second. */
  async #read(): Promise<void> {
    const { policy } = this.counter
    const check: Check = { ...this.counter, cost: 1, shadow: false }
    try {
      const [answer] = await this.#store.peek([[check]], this.#storeTimeoutMs)
      if (answer === undefined) return
      const { nowMs, checks } = answer
      const state = penalty.at(checks[0]?.state, policy, nowMs)
      const restMs = penalty.retryAfterMs(state, policy, 1, nowMs)
      if (restMs > 0) this.began(restMs)
    } catch {}
  }
}
