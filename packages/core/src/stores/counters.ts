import type { Algorithm, CounterState } from "../algorithms/algorithm.ts"
import { algorithmOf } from "../algorithms/kinds.ts"
import { ceilingOf, countsRefusals, type Policy } from "../ground/policy.ts"
import type { Check, CounterKey, Refund, StoreResult } from "./store.ts"
import { type Pending, statesAfterRefusal, takeTogether } from "./take-together.ts"

/** Where the states of counters are, by a key for each. */
export interface CounterStates<Key> {
  /** What was written; undefined is a counter that nobody has taken from, or that was forgotten since. */
  read(key: Key): CounterState | undefined
  /** Writes what is to be kept until `emptyAtMs`, in epoch milliseconds, and may be forgotten then. */
  write(key: Key, state: CounterState, emptyAtMs: number, nowMs: number): void
  /** Keeps what has been written until `emptyAtMs` at least. */
  keep(key: Key, emptyAtMs: number): void
  /** Who is counted is refused until `releaseAtMs`: among the last to be forgotten where there is no room. */
  block(key: Key, releaseAtMs: number): void
  remove(key: Key): void
}

/** A check on its way, and where its counter is. */
interface Located<Key> extends Pending {
  readonly key: Key
}

/** What a counter is kept by. */
export interface Keys<Key> {
  /** The key of a counter and a partition; one that is of no use any more may be written to, and yielded. */
  of(counter: string, partition: string, reused?: Key): Key
  areSame(one: Key, other: Key): boolean
}

/** Counts requests in the states of counters, by the time that it is told. Atomic where nothing else writes to them meanwhile. */
export class Counters<Key> {
  readonly #table: CounterStates<Key>
  readonly #keys: Keys<Key>
  readonly #isSame: (one: Located<Key>, other: Located<Key>) => boolean
  /** Reused for every counter that is looked at by itself: an allocation less on the hot path. */
  readonly #spare: Key

  constructor(table: CounterStates<Key>, keys: Keys<Key>) {
    this.#table = table
    this.#keys = keys
    this.#spare = keys.of("", "")
    this.#isSame = (one, other) => keys.areSame(one.key, other.key)
  }

  /** Takes the units of all checks, or of none. */
  take(checks: readonly Check[], nowMs: number): StoreResult {
    const isOne = checks.length === 1
    return isOne ? this.#takeOne(checks[0] as Check, nowMs) : this.#takeAll(checks, nowMs)
  }

  /** What `take` would say of the request, and what its counters hold. */
  peek(checks: readonly Check[], nowMs: number): StoreResult {
    const pending = checks.map((check) => this.#look(check, nowMs))
    const granted = takeTogether(pending, nowMs, this.#isSame)
    return {
      nowMs,
      granted,
      checks: checks.map((check) => {
        const { key, algorithm, state } = this.#look(check, nowMs)
        keepState(this.#table, key, algorithm, state, check.policy)
        return { state, taken: 0 }
      }),
    }
  }

  refund(refunds: readonly Refund[], nowMs: number): void {
    for (const { policy, partition, units, after } of refunds) {
      const algorithm = algorithmOf(policy)
      const key = this.#keys.of(policy.counter, partition, this.#spare)
      const state = stateAt(this.#table, key, algorithm, policy, nowMs)
      const left = algorithm.withoutUnits(state, policy, chargeable(state, units), after, nowMs)
      if (left === state) keepState(this.#table, key, algorithm, state, policy)
      else if (left.previous === 0 && left.current === 0) this.#table.remove(key)
      else {
        this.#table.write(key, left, algorithm.emptyAtMs(left, policy), nowMs)
        // A block by hand is among the last to be evicted, also if its client does not come back.
        if (policy.algorithm === "penalty") {
          markBlocked(this.#table, key, algorithm, left, { policy, partition, cost: 1, shadow: false }, nowMs)
        }
      }
    }
  }

  reset(keys: readonly CounterKey[]): void {
    for (const { policy, partition } of keys) {
      this.#table.remove(this.#keys.of(policy.counter, partition, this.#spare))
    }
  }

  /** Takes the usual request: one check, so there is nothing to take back. */
  #takeOne(check: Check, nowMs: number): StoreResult {
    const { policy, partition, cost, shadow } = check
    const algorithm = algorithmOf(policy)
    const key = this.#keys.of(policy.counter, partition, this.#spare)
    const state = stateAt(this.#table, key, algorithm, policy, nowMs)
    if (cost === 0) {
      keepState(this.#table, key, algorithm, state, policy)
      const next = algorithm.withUnits(state, policy, 0, nowMs)
      return { nowMs, granted: true, checks: [{ state: next, taken: 0 }] }
    }
    if (algorithm.admits(state, policy, cost, nowMs)) {
      const next = algorithm.withUnits(state, policy, cost, nowMs)
      this.#table.write(key, next, algorithm.emptyAtMs(next, policy), nowMs)
      return { nowMs, granted: true, checks: [{ state: next, taken: cost }] }
    }
    keepState(this.#table, key, algorithm, state, policy)
    if (shadow) return { nowMs, granted: true, checks: [{ state, taken: 0 }] }
    let after = state
    if (policy.countRejected === true && cost <= ceilingOf(policy)) {
      after = algorithm.withRejected(state, policy, cost, nowMs)
      if (after !== state) this.#table.write(key, after, algorithm.emptyAtMs(after, policy), nowMs)
    }
    markBlocked(this.#table, key, algorithm, after, check, nowMs)
    return { nowMs, granted: false, checks: [{ state: after, taken: 0 }] }
  }

  #takeAll(checks: readonly Check[], nowMs: number): StoreResult {
    const pending = checks.map((check) => this.#look(check, nowMs))
    const before = pending.map(({ state }) => state)
    if (takeTogether(pending, nowMs, this.#isSame)) {
      for (let i = 0; i < pending.length; i++) {
        const { key, algorithm, state, check, taken } = pending[i] as Located<Key>
        // A penalty that admits has counted nothing.
        if (taken > 0 && state !== before[i])
          this.#table.write(key, state, algorithm.emptyAtMs(state, check.policy), nowMs)
        else keepState(this.#table, key, algorithm, state, check.policy)
      }
      return { nowMs, granted: true, checks: pending.map(({ state, taken }) => ({ state, taken })) }
    }
    const states = checks.some(countsRefusals)
      ? statesAfterRefusal(pending, before, nowMs, this.#isSame)
      : before
    pending.forEach(({ key, algorithm, check }, i) => {
      const state = states[i] as CounterState
      if (state !== before[i]) this.#table.write(key, state, algorithm.emptyAtMs(state, check.policy), nowMs)
      else keepState(this.#table, key, algorithm, state, check.policy)
      if (!check.shadow) markBlocked(this.#table, key, algorithm, state, check, nowMs)
    })
    return { nowMs, granted: false, checks: states.map((state) => ({ state, taken: 0 })) }
  }

  #look(check: Check, nowMs: number): Located<Key> {
    const key = this.#keys.of(check.policy.counter, check.partition)
    const algorithm = algorithmOf(check.policy)
    return {
      check,
      algorithm,
      key,
      state: stateAt(this.#table, key, algorithm, check.policy, nowMs),
      taken: 0,
    }
  }
}

/**
 * Returns the units to refund. Negative units are a charge, which is cut so that the counter stays a safe integer: with
 * 2^53 - 3 in use, a charge of 5 becomes 2. The Redis script refund.lua does the same.
 */
export function chargeable({ current, previous }: CounterState, units: number): number {
  return Math.max(units, Math.min(0, current + previous - Number.MAX_SAFE_INTEGER))
}

/**
 * What the counter holds now. When the clock went back, the state is stored as it has been brought back, even if
 * nothing is taken: else it would be brought back again with each request, and its client would wait for the clock to
 * catch up instead of two windows at most.
 */
function stateAt<Key>(
  table: CounterStates<Key>,
  key: Key,
  algorithm: Algorithm,
  policy: Policy,
  nowMs: number,
): CounterState {
  const stored = table.read(key)
  const state = algorithm.at(stored, policy, nowMs)
  if (stored !== undefined && state.startMs < stored.startMs) {
    table.write(key, state, algorithm.emptyAtMs(state, policy), nowMs)
  }
  return state
}

/** Keeps a counter that is not written: since it was, its bucket may have begun to fill slower, or its block to last longer. */
function keepState<Key>(
  table: CounterStates<Key>,
  key: Key,
  algorithm: Algorithm,
  state: CounterState,
  policy: Policy,
): void {
  if (algorithm.endsByRule === true) table.keep(key, algorithm.emptyAtMs(state, policy))
}

/**
 * Remembers until when who was refused is refused, so that its counter is among the last to be evicted.
 */
function markBlocked<Key>(
  table: CounterStates<Key>,
  key: Key,
  algorithm: Algorithm,
  state: CounterState,
  { policy, cost }: Check,
  nowMs: number,
): void {
  const waitMs = algorithm.retryAfterMs(state, policy, cost, nowMs)
  // A request that never fits says nothing about the client's next one.
  if (waitMs > 0 && waitMs !== Number.POSITIVE_INFINITY) table.block(key, nowMs + waitMs)
}
