import type { Algorithm, CounterState } from "../../algorithms/algorithm.ts"
import type { Policy } from "../../policy.ts"
import type { Check } from "../store.ts"
import type { CounterTable } from "./counter-table.ts"
import type { KeyHash } from "./key-hash.ts"

/**
 * What the counter holds now. When the clock went back, the state is stored as it has been brought back, even if
 * nothing is taken: else it would be brought back again with each request, and its client would wait for the clock to
 * catch up instead of two windows at most.
 */
export function stateAt(
  table: CounterTable,
  key: KeyHash,
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
export function keepState(
  table: CounterTable,
  key: KeyHash,
  algorithm: Algorithm,
  state: CounterState,
  policy: Policy,
): void {
  // Stryker disable next-line ConditionalExpression: others end when they were to end, so it is looked for in vain
  if (algorithm.endsByRule === true) table.keep(key, algorithm.emptyAtMs(state, policy))
}

/**
 * Remembers until when who was refused is refused, so that its counter is among the last to be evicted. Yields the milliseconds
 * until then.
 */
export function markBlocked(
  table: CounterTable,
  key: KeyHash,
  algorithm: Algorithm,
  state: CounterState,
  { policy, cost }: Check,
  nowMs: number,
): number {
  const waitMs = algorithm.retryAfterMs(state, policy, cost, nowMs)
  // A request that never fits says nothing about the client's next one.
  if (waitMs > 0 && waitMs !== Number.POSITIVE_INFINITY) table.block(key, nowMs + waitMs)
  return waitMs
}
