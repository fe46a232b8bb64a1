import type { Grow } from "./by-slot.ts"

/** What V8 needs for a typed array besides its elements. */
export const ARRAY_BYTES = 200
/** What V8 needs for a listed key besides its characters: its places in a map and in arrays, and the string's header. */
const KEY_BYTES = 120

/** A key with the number of times that it was counted. */
export interface TopKey {
  readonly key: string
  /** At most `error` too high, never too low. */
  readonly count: number
  readonly error: number
}

/** Keys by falling count, and the most that a key may have been counted that is not among them. */
export interface TopKeys<Key extends TopKey = TopKey> {
  readonly keys: readonly Key[]
  readonly unlisted: number
}

/**
 * Finds the keys that are counted most, in bounded memory, by the algorithm Space-Saving (Metwally, Agrawal and El
 * Abbadi, 2005). A new key takes the place of the key with the least count, and inherits that count as its error.
 */
export class SpaceSaving {
  readonly #capacity: number
  readonly #grow: Grow
  readonly #places = new Map<string, number>()
  readonly #keys: string[] = []
  readonly #counts: Uint32Array
  readonly #errors: Uint32Array
  /** The least count, once all places are taken. Counts only grow, so it only grows, too. */
  #least = 0
  /** No place before this one has the least count. */
  #from = 0

  /** The memory that the keys take. */
  bytes = 0

  constructor(capacity: number, grow: Grow) {
    this.#capacity = capacity
    this.#grow = grow
    this.#counts = new Uint32Array(capacity)
    this.#errors = new Uint32Array(capacity)
    this.#take(this.#counts.byteLength + this.#errors.byteLength + 2 * ARRAY_BYTES)
  }

  /** Counts a key once. Returns its place, or -1 - place if the key has just been listed. */
  add(key: string): number {
    const place = this.#places.get(key)
    if (place !== undefined) {
      this.#counts[place] = (this.#counts[place] as number) + 1
      return place
    }
    const free = this.#keys.length < this.#capacity ? this.#keys.length : this.#leastPlace()
    const evicted = this.#keys[free]
    if (evicted !== undefined) {
      this.#places.delete(evicted)
      this.#errors[free] = this.#counts[free] as number
      this.#take(key.length - evicted.length)
    } else this.#take(key.length + KEY_BYTES)
    this.#counts[free] = (this.#counts[free] as number) + 1
    this.#keys[free] = key
    this.#places.set(key, free)
    return -1 - free
  }

  /** Returns the keys by falling count, each with its place. */
  read(): TopKeys<TopKey & { readonly place: number }> {
    const keys = this.#keys.map((key, place) => ({
      key,
      count: this.#counts[place] as number,
      error: this.#errors[place] as number,
      place,
    }))
    const isFull = keys.length === this.#capacity
    return {
      keys: keys.sort((one, other) => other.count - one.count),
      unlisted: isFull ? (keys.at(-1)?.count ?? 0) : 0,
    }
  }

  #take(bytes: number): void {
    this.bytes += bytes
    this.#grow(bytes)
  }

  #leastPlace(): number {
    for (;;) {
      for (; this.#from < this.#capacity; this.#from++) {
        if (this.#counts[this.#from] === this.#least) return this.#from
      }
      this.#least = this.#counts.reduce((least, count) => Math.min(least, count), Number.POSITIVE_INFINITY)
      this.#from = 0
    }
  }
}

/**
 * Merges lists of different times or processes, and keeps the first `most` keys. A key that a list does not contain may
 * have been counted there as often as `unlisted` says, so this number is added to its count and its error. `pick`
 * returns the details of a key from its entries.
 */
export function mergeTop<Key extends TopKey>(
  lists: readonly TopKeys<Key>[],
  most: number,
  pick: (one: Key, other: Key) => Key,
): TopKeys<Key> {
  const all = new Map<string, Key>()
  const unlistedInAll = lists.reduce((sum, { unlisted }) => sum + unlisted, 0)
  for (const { keys, unlisted } of lists) {
    for (const entry of keys) {
      const known = all.get(entry.key)
      const before = known ?? { count: unlistedInAll, error: unlistedInAll }
      all.set(entry.key, {
        ...(known === undefined ? entry : pick(known, entry)),
        count: before.count + entry.count - unlisted,
        error: before.error + entry.error - unlisted,
      })
    }
  }
  const keys = [...all.values()].sort((one, other) => other.count - one.count)
  return { keys: keys.slice(0, most), unlisted: Math.max(unlistedInAll, keys[most]?.count ?? 0) }
}
