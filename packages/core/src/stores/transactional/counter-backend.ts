import type { CounterState } from "../../algorithms/algorithm.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"

/** A stored counter: its state and its expiry. */
export interface KeptCounter {
  /** The state. The state contains only numbers and strings, so it can be stored as JSON. */
  readonly state: CounterState
  /** The expiry in epoch milliseconds, by the clock of `transact`. The counter must not be deleted earlier. */
  readonly expiresAtMs: number
}

/** A change of a counter. */
export interface CounterChange {
  /** The key of the counter, which is a key of the transaction. */
  readonly key: string
  /** The counter to store, or undefined to delete it. */
  readonly counter: KeptCounter | undefined
}

/**
 * A function that returns the changes of a transaction. `found` contains the counters under the transaction's keys,
 * in the order of the keys.
 */
export type ChangeCounters = (
  found: readonly (KeptCounter | undefined)[],
  nowMs: number,
) => readonly CounterChange[]

/**
 * A back end that stores counters in transactions, such as a table of PostgreSQL or SQLite, or a key-value store with
 * compare-and-set. `transactionalStore` creates a store from it.
 */
export interface CounterBackend {
  /** Whether other processes use the same counters. Default: true. */
  readonly isShared?: boolean
  /**
   * Reads the counters under the keys, passes them to `change`, and writes the changes, all in one transaction. No
   * other transaction may read or write these counters in the meantime. `transact` may also pass expired counters.
   *
   * `keys` are printable ASCII, at most 256 characters each. Keys that differ only in case or in trailing spaces are
   * different keys. The keys are distinct and sorted, so that transactions that lock them one by one cannot deadlock.
   *
   * `change` returns synchronously and has no side effects. A transaction that is retried calls `change` again with
   * the counters that it finds in the retry. When `transact` ends, the latest result of `change` must have been
   * written. The result may be empty.
   *
   * `nowMs` is the back end's own time in epoch milliseconds if it has a clock, so that all processes use the same
   * time. Throws or rejects only if the back end failed.
   *
   * `withinMs` is how long the caller waits from now. Use it as the timeout of the transaction if the back end
   * supports one. `withinMs` is undefined if the caller has not set a timeout.
   */
  transact(keys: readonly string[], change: ChangeCounters, withinMs?: number): MaybePromise<void>
  /** Frees the resources that the back end opened. */
  close?(): MaybePromise<void>
}
