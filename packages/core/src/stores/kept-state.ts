import type { Algorithm, CounterState } from "../algorithms/algorithm.ts"
import type { Policy } from "../ground/policy.ts"
import type { Check } from "./store.ts"

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

/**
 * What the counter holds now. When the clock went back, the state is stored as it has been brought back, even if
 * nothing is taken: else it would be brought back again with each request, and its client would wait for the clock to
 * catch up instead of two windows at most.
 */
export function stateAt<Key>(
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
export function keepState<Key>(
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
export function markBlocked<Key>(
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
