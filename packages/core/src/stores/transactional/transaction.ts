import type { CounterState } from "../../algorithms/algorithm.ts"
import { isPacked } from "../../algorithms/packed-counts.ts"
import { isCountable } from "../../ground/clock.ts"
import { StoreUnavailableError, textOf } from "../../ground/errors.ts"
import { hash } from "../../ground/hash.ts"
import type { CounterStates } from "../counters.ts"
import type { CounterChange, KeptCounter } from "./counter-backend.ts"

/** A partition that is written into a key unchanged. */
const PLAIN = /^[\x20-\x7e]{0,128}$/

/**
 * Returns a key of printable ASCII, which every database accepts. The database must distinguish upper and lower case.
 *
 * The length of the counter is part of the key, so that `a:b` with `c` differs from `a` with `b:c`. Clients may
 * choose partitions freely, so a hash replaces a partition that is long or contains other characters. The input of
 * the hash is the partition in UTF-16.
 */
export function textKey(counter: string, partition: string): string {
  const name = `${counter.length}:${counter}`
  if (PLAIN.test(partition)) return `${name}:${partition}`
  return `${name}#${hash("sha256", Buffer.from(partition, "utf16le"), "base64url")}`
}

/** The stored counters of one transaction, and their changes. */
export class Transaction implements CounterStates<string> {
  readonly #found = new Map<string, KeptCounter>()
  readonly #changed = new Map<string, KeptCounter | undefined>()

  /**
   * Throws StoreUnavailableError if a stored value is not a valid counter, because a decision by such a value would
   * be random.
   */
  constructor(keys: readonly string[], found: readonly (KeptCounter | undefined)[], nowMs: number) {
    keys.forEach((key, i) => {
      const kept = found[i]
      if (kept === undefined || kept === null) return
      if (!isKept(kept)) throw noCounter(key)
      if (kept.expiresAtMs > nowMs) this.#found.set(key, kept)
    })
  }

  get changes(): readonly CounterChange[] {
    return [...this.#changed].map(([key, counter]) => ({ key, counter }))
  }

  read(key: string): CounterState | undefined {
    return this.#kept(key)?.state
  }

  /** Throws StoreUnavailableError if the new state is invalid, which happens if the stored parts were corrupt. */
  write(key: string, state: CounterState, emptyAtMs: number): void {
    // Cap the expiry, because a bucket that refills slowly may be full only at a time beyond the safe integers.
    const counter = { state, expiresAtMs: Math.min(emptyAtMs, Number.MAX_SAFE_INTEGER) }
    if (!isKept(counter)) throw noCounter(key)
    this.#changed.set(key, counter)
  }

  keep(key: string, emptyAtMs: number): void {
    const kept = this.#kept(key)
    if (kept !== undefined && kept.expiresAtMs < emptyAtMs) this.write(key, kept.state, emptyAtMs)
  }

  /** Does nothing, because the back end never evicts counters. */
  block(): void {}

  remove(key: string): void {
    if (this.#kept(key) !== undefined) this.#changed.set(key, undefined)
  }

  #kept(key: string): KeptCounter | undefined {
    return this.#changed.has(key) ? this.#changed.get(key) : this.#found.get(key)
  }
}

/**
 * Returns the time of a back end in whole milliseconds. Throws StoreUnavailableError if the time is invalid. With
 * NaN, every request would silently be admitted.
 */
export function wholeMs(nowMs: unknown): number {
  if (!isCountable(nowMs)) throw rubbish(`its time is ${textOf(nowMs)}, but must be in epoch milliseconds`)
  return Math.floor(nowMs)
}

function isKept({ state, expiresAtMs }: Partial<KeptCounter>): boolean {
  const { startMs, current, previous, parts } = state ?? {}
  return (
    [startMs, current, previous, expiresAtMs].every(
      (each) => Number.isSafeInteger(each) && (each as number) >= 0,
    ) && isPacked(parts)
  )
}

function noCounter(key: string): StoreUnavailableError {
  return rubbish(`the value of ${JSON.stringify(key)} is not a valid counter`)
}

function rubbish(what: string): StoreUnavailableError {
  return new StoreUnavailableError(`The back end of the store returned invalid data: ${what}.`, {
    kind: "invalid-answer",
  })
}
