import type { CounterState } from "../../algorithms/algorithm.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"

/** A counter as it is kept: what it holds, and for how long that counts. */
export interface KeptCounter {
  /** Numbers and texts alone: `JSON.stringify` keeps it. */
  readonly state: CounterState
  /** Epoch milliseconds, by the time that `transact` tells. The counter may be deleted then, and not before. */
  readonly expiresAtMs: number
}

/** What becomes of a counter. */
export interface CounterChange {
  /** Which one: a key of the transaction. */
  readonly key: string
  /** To be kept in place of what was there; undefined is to delete that. */
  readonly counter: KeptCounter | undefined
}

/** What is kept under the keys of a transaction, in their order, and what becomes of it. */
export type ChangeCounters = (
  found: readonly (KeptCounter | undefined)[],
  nowMs: number,
) => readonly CounterChange[]

/**
 * A place for counters that has transactions: a table of PostgreSQL or SQLite, a key-value store with compare-and-set.
 * `transactionalStore` makes a store of it.
 */
export interface CounterBackend {
  /** Whether other processes count in it too: default true. */
  readonly isShared?: boolean
  /**
   * Reads what is kept under the keys, asks `change` with that what becomes of it, and writes that, all in one transaction:
   * no other one reads or writes these counters in between. `keys` are printable ASCII, 256 characters at most, case and spaces at the end told apart, distinct and
   * sorted, so that two who lock them one by one wait for each other and not in a circle. What has expired may be told all the same.
   *
   * `change` answers at once and does nothing else. A transaction that has to be tried again asks it anew with what is there then;
   * what it answered last is what has to have been written when `transact` is done. It may answer with no changes.
   *
   * `nowMs` is the back end's own time in epoch milliseconds, where it has one: all processes count by it. Throws or rejects when the
   * back end broke, and never otherwise.
   *
   * `withinMs` is how long the caller waits, from now: a time limit for the transaction, where the back end has such. It is undefined
   * when the caller has set none.
   */
  transact(keys: readonly string[], change: ChangeCounters, withinMs?: number): MaybePromise<void>
  /** Frees what the back end itself opened. */
  close?(): MaybePromise<void>
}
