import type { Refusal } from "@sluice/core"
import type { Grow } from "./by-slot.ts"
import { DISTINCT_BYTES, DistinctKeys, OWN_SEED, SHARED_SEED } from "./distinct.ts"
import type { LimitedClient } from "./snapshot.ts"
import { SpaceSaving, type TopKey, type TopKeys } from "./top-keys.ts"

/** Most clients that are listed for a rule. */
export const MOST_REFUSED = 256

/** What the estimates take, and the counts of refusals, which a rule that only admits requests does not have. */
const FIXED_BYTES = 2 * DISTINCT_BYTES + 2_800

/** A refused client as in a list that can be merged. */
export type RefusedKey = TopKey & Omit<LimitedClient, "refusals">

/** The refused clients of one slot. */
export interface RefusedOfSlot {
  readonly top: TopKeys<RefusedKey>
  /** The estimates with the seed of this process, and with that of all. */
  readonly distinct: readonly [own: DistinctKeys, shared: DistinctKeys]
}

/** Lists the clients that a rule refuses most in one slot, and estimates how many clients it refuses. */
export class RefusedClients {
  readonly #top: SpaceSaving
  readonly #distinct = [new DistinctKeys(OWN_SEED), new DistinctKeys(SHARED_SEED)] as const
  // The details of the key at each place of the list.
  readonly #lastMs: number[] = []
  readonly #untilMs: number[] = []
  readonly #reasons: Refusal[] = []

  constructor(grow: Grow) {
    this.#top = new SpaceSaving(MOST_REFUSED, grow)
    grow(FIXED_BYTES)
  }

  get bytes(): number {
    return this.#top.bytes + FIXED_BYTES
  }

  add(key: string, reason: Refusal, nowMs: number, retryAfterMs: number): void {
    const added = this.#top.add(key)
    const place = added < 0 ? -1 - added : added
    // A key in the list has been added to the estimate before.
    if (added < 0) for (const distinct of this.#distinct) distinct.add(key)
    this.#lastMs[place] = nowMs
    this.#untilMs[place] = nowMs + retryAfterMs
    this.#reasons[place] = reason
  }

  read(): RefusedOfSlot {
    const { keys, unlisted } = this.#top.read()
    const detailed = keys.map(({ key, count, error, place }): RefusedKey => {
      const untilMs = this.#untilMs[place] as number
      return {
        key,
        count,
        error,
        lastMs: this.#lastMs[place] as number,
        untilMs: Number.isFinite(untilMs) ? untilMs : null,
        reason: this.#reasons[place] as Refusal,
      }
    })
    return { top: { keys: detailed, unlisted }, distinct: this.#distinct }
  }
}

/** Returns the details of the later refusal. */
export function laterRefusal(one: RefusedKey, other: RefusedKey): RefusedKey {
  return one.lastMs >= other.lastMs ? one : other
}

// The next two functions name each member, because rest properties take 20 times as long, for thousands of clients.

/** Returns a client of a merged list. */
export function limitedClient({ key, count, error, lastMs, untilMs, reason }: RefusedKey): LimitedClient {
  return { key, refusals: count, error, lastMs, untilMs, reason }
}

/** Returns a client as in a list that can be merged. */
export function refusedKey({ key, refusals, error, lastMs, untilMs, reason }: LimitedClient): RefusedKey {
  return { key, count: refusals, error, lastMs, untilMs, reason }
}
