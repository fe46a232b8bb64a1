import type { Algorithm, CounterState } from "../algorithms/algorithm.ts"
import { algorithmOf } from "../algorithms/kinds.ts"
import { ceilingOf, type Policy } from "../ground/policy.ts"
import type {
  Check,
  Counted,
  CounterKey,
  CounterReading,
  Refund,
  StoreReading,
  StoreResult,
} from "./store.ts"
import { countsRefusals, type PendingCheck, statesAfterRefusal, takeTogether } from "./take-together.ts"

/** A table of the states of counters, each stored under a key. */
export interface CounterStates<Key> {
  /** Returns the written state, or undefined if the counter is unused or was deleted. */
  read(key: Key): CounterState | undefined
  /** Writes a state. The table must keep the state until `emptyAtMs`, in epoch milliseconds, and may then delete it. */
  write(key: Key, state: CounterState, emptyAtMs: number, nowMs: number): void
  /** Keeps the written state at least until `emptyAtMs`. */
  keep(key: Key, emptyAtMs: number): void
  /** Records that the client is refused until `releaseAtMs`, so that its counter is among the last to be evicted. */
  block(key: Key, releaseAtMs: number): void
  /** Deletes the state. */
  remove(key: Key): void
}

/** A pending check with the key of its counter. */
interface Located<Key> extends PendingCheck {
  readonly key: Key
}

/** Returns the key of a counter and a partition. May overwrite and return `reused`, a key that is not needed now. */
export type NameKey<Key> = (counter: string, partition: string, reused?: Key) => Key

/**
 * Counts requests in the states of counters, at times that the caller passes, for a store whose data can be read and
 * written synchronously. Atomic if nothing else writes the states. Times are whole epoch milliseconds.
 */
export class Counters<Key> {
  readonly #table: CounterStates<Key>
  readonly #keyOf: NameKey<Key>
  /** A key that is reused for counters that are handled one at a time. The key saves an allocation on the hot path. */
  readonly #spare: Key

  /**
   * `keyOf` returns the key of a counter in the table. Different counters must have different keys. `spare` is a key
   * that `keyOf` may overwrite.
   */
  constructor(table: CounterStates<Key>, keyOf: NameKey<Key>, spare: Key = keyOf("", "")) {
    this.#table = table
    this.#keyOf = keyOf
    this.#spare = spare
  }

  /** Takes the units of all checks of a request, or no units, as {@link Store.take} does. */
  take(checks: readonly Check[], nowMs: number): StoreResult {
    const isOne = checks.length === 1
    return isOne ? this.#takeOne(checks[0] as Check, nowMs) : this.#takeAll(checks, nowMs)
  }

  /** Returns the current states of the counters. */
  read(keys: readonly CounterKey[], nowMs: number): StoreReading {
    const counters = keys.map(({ policy, partition }): CounterReading => {
      const algorithm = algorithmOf(policy)
      const key = this.#keyOf(policy.counter, partition, this.#spare)
      const state = this.#stateAt(key, algorithm, policy, nowMs)
      this.#keep(key, algorithm, state, policy)
      return { state }
    })
    return { nowMs, counters }
  }

  /** Refunds units as {@link Store.refund} does. */
  refund(refunds: readonly Refund[], nowMs: number): void {
    for (const { policy, partition, units, after } of refunds) {
      const algorithm = algorithmOf(policy)
      const key = this.#keyOf(policy.counter, partition, this.#spare)
      const state = this.#stateAt(key, algorithm, policy, nowMs)
      const left = algorithm.withoutUnits(state, policy, chargeable(state, units), after, nowMs)
      if (left === state) this.#keep(key, algorithm, state, policy)
      else if (left.previous === 0 && left.current === 0) this.#table.remove(key)
      else {
        this.#table.write(key, left, algorithm.emptyAtMs(left, policy), nowMs)
        // Mark an operator's block, so that its counter is among the last to be evicted even if the client sends no
        // more requests.
        if (policy.algorithm === "penalty") this.#markBlocked(key, algorithm, left, policy, 1, nowMs)
      }
    }
  }

  /** Deletes the counters. */
  reset(keys: readonly CounterKey[]): void {
    for (const { policy, partition } of keys) {
      this.#table.remove(this.#keyOf(policy.counter, partition, this.#spare))
    }
  }

  /**
   * Takes the units of a request with a single check, which is the usual case. A single check never has to undo
   * anything.
   */
  #takeOne(check: Check, nowMs: number): StoreResult {
    const { policy, partition, cost, shadow } = check
    const algorithm = algorithmOf(policy)
    const key = this.#keyOf(policy.counter, partition, this.#spare)
    const state = this.#stateAt(key, algorithm, policy, nowMs)
    if (cost === 0) {
      this.#keep(key, algorithm, state, policy)
      const next = algorithm.withUnits(state, policy, 0, nowMs)
      return { nowMs, granted: true, checks: [{ state: next, taken: 0 }] }
    }
    if (algorithm.admits(state, policy, cost, nowMs)) {
      const next = algorithm.withUnits(state, policy, cost, nowMs)
      this.#table.write(key, next, algorithm.emptyAtMs(next, policy), nowMs)
      return { nowMs, granted: true, checks: [{ state: next, taken: cost }] }
    }
    this.#keep(key, algorithm, state, policy)
    if (shadow) return { nowMs, granted: true, checks: [{ state, taken: 0 }] }
    let after = state
    if (policy.countRejected === true && cost <= ceilingOf(policy)) {
      after = algorithm.withRejected(state, policy, cost, nowMs)
      if (after !== state) this.#table.write(key, after, algorithm.emptyAtMs(after, policy), nowMs)
    }
    const retryAfterMs = this.#markBlocked(key, algorithm, after, policy, cost, nowMs)
    return { nowMs, granted: false, checks: [{ state: after, taken: 0, retryAfterMs }] }
  }

  #takeAll(checks: readonly Check[], nowMs: number): StoreResult {
    const { length } = checks
    // Use arrays of the right size and loops, because every closure and every reallocation here slows down most
    // requests with several rules.
    const pending = new Array<Located<Key>>(length)
    const before = new Array<CounterState>(length)
    for (let i = 0; i < length; i++) {
      const one = this.#look(checks[i] as Check, nowMs)
      pending[i] = one
      before[i] = one.state
    }
    if (!takeTogether(pending, nowMs)) return this.#refuseAll(pending, before, nowMs)
    const counted = new Array<Counted>(length)
    for (let i = 0; i < length; i++) {
      const { key, algorithm, state, check, taken } = pending[i] as Located<Key>
      // A penalty that admits does not change its state, so it need not be written.
      if (taken > 0 && state !== before[i])
        this.#table.write(key, state, algorithm.emptyAtMs(state, check.policy), nowMs)
      else this.#keep(key, algorithm, state, check.policy)
      counted[i] = { state, taken }
    }
    return { nowMs, granted: true, checks: counted }
  }

  #refuseAll(pending: readonly Located<Key>[], before: readonly CounterState[], nowMs: number): StoreResult {
    const isCounted = pending.some(({ check }) => countsRefusals(check))
    const states = isCounted ? statesAfterRefusal(pending, before, nowMs) : before
    const checks = pending.map(({ key, algorithm, check }, i): Counted => {
      const state = states[i] as CounterState
      if (state !== before[i]) this.#table.write(key, state, algorithm.emptyAtMs(state, check.policy), nowMs)
      else this.#keep(key, algorithm, state, check.policy)
      if (check.shadow) return { state, taken: 0 }
      const retryAfterMs = this.#markBlocked(key, algorithm, state, check.policy, check.cost, nowMs)
      return { state, taken: 0, retryAfterMs }
    })
    return { nowMs, granted: false, checks }
  }

  /**
   * Returns the counter's current state. If the clock went back, writes the state that `at` has moved back, even if
   * no units are taken. Otherwise each request would move the state back again. The client would then wait until the
   * clock has caught up, instead of at most two windows.
   */
  #stateAt(key: Key, algorithm: Algorithm, policy: Policy, nowMs: number): CounterState {
    const stored = this.#table.read(key)
    const state = algorithm.at(stored, policy, nowMs)
    if (stored !== undefined && state.startMs < stored.startMs) {
      this.#table.write(key, state, algorithm.emptyAtMs(state, policy), nowMs)
    }
    return state
  }

  /**
   * Extends the expiry of a counter that is not written. Since the last write, a change of the rule may have made its
   * bucket refill more slowly or its block last longer.
   */
  #keep(key: Key, algorithm: Algorithm, state: CounterState, policy: Policy): void {
    if (algorithm.endsByRule === true) this.#table.keep(key, algorithm.emptyAtMs(state, policy))
  }

  /**
   * Records until when a client is refused, so that its counter is among the last to be evicted. Returns for how many
   * milliseconds the client is refused. For permits, this time is a hint of a second. Each refusal renews the mark and
   * each release removes it. So the counter of a client that keeps asking is protected, because the client would get
   * all permits once more without it.
   */
  #markBlocked(
    key: Key,
    algorithm: Algorithm,
    state: CounterState,
    policy: Policy,
    cost: number,
    nowMs: number,
  ): number {
    const waitMs = algorithm.retryAfterMs(state, policy, cost, nowMs)
    // A request that can never fit says nothing about the client's next request.
    if (waitMs > 0 && waitMs !== Number.POSITIVE_INFINITY) this.#table.block(key, nowMs + waitMs)
    return waitMs
  }

  #look(check: Check, nowMs: number): Located<Key> {
    const key = this.#keyOf(check.policy.counter, check.partition)
    const algorithm = algorithmOf(check.policy)
    return {
      check,
      algorithm,
      key,
      state: this.#stateAt(key, algorithm, check.policy, nowMs),
      taken: 0,
    }
  }
}

/**
 * Returns the units to refund. Negative units are a charge, which is capped so that the counter stays a safe integer.
 * For example, a charge of 5 becomes 2 if 2^53 - 3 units are in use. The Redis script refund.lua does the same.
 */
export function chargeable({ current, previous }: CounterState, units: number): number {
  return Math.max(units, Math.min(0, current + previous - Number.MAX_SAFE_INTEGER))
}
