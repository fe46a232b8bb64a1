import type { CounterState } from "../../algorithms/algorithm.ts"
import type { KeyHash } from "./key-hash.ts"

/**
 * A slot is five adjacent 8-byte words, so that a decision touches only one or two cache lines:
 * hash and mark | previous | current | startMs | emptyAt and releaseAt.
 * emptyAt and releaseAt are whole seconds, rounded up, of 32 bits each (until the year 2106).
 *
 * The mark records when the slot was last used. The mark replaces the top 8 bits of the hash. In a table of a million
 * keys, all keys of a segment have the same value in these bits. A smaller table needs fewer bits to distinguish its
 * keys.
 */
const WORDS = 5
const PREVIOUS = 1
const CURRENT = 2
const START_MS = 3
/** Number of 32-bit words in a slot, for offsets into `#halves`. The word with the mark is 0 if the slot is free. */
const HALVES = 2 * WORDS
const HASH_LOW = 0
const HASH_HIGH = 1
const HASH_BITS = 0x00ff_ffff
const MARK_SHIFT = 24
/** The highest mark. The lowest mark is 1, so that the word with the mark of a used slot is never 0. */
export const MARKS = 255
const EMPTY_AT_S = 8
const RELEASE_AT_S = 9

/**
 * Slots in one typed array: an open-addressed hash table with linear probing. The subclass must keep at least one slot
 * free.
 */
export class SlotTable {
  protected capacity: number
  #words: Float64Array
  #halves: Uint32Array
  /** The parts of each slot's state. Undefined until a state with parts is written. */
  #parts: (string | undefined)[] | undefined

  protected constructor(capacity: number) {
    this.capacity = capacity
    this.#words = new Float64Array(capacity * WORDS)
    this.#halves = new Uint32Array(this.#words.buffer)
  }

  /** Returns the memory of all used and free slots in bytes, without the strings of parts. */
  get bytes(): number {
    return this.#words.byteLength + 8 * (this.#parts?.length ?? 0)
  }

  /**
   * Returns the slot of a key. If the table does not contain the key, returns `-1 - free`, where `free` is a free
   * slot for the key. Keys move between slots, so a slot is valid only until the next slot is claimed or freed.
   */
  find(key: KeyHash): number {
    const low = key.low
    const high = key.high & HASH_BITS
    const halves = this.#halves
    const end = this.capacity
    for (let slot = this.#home(low); ; slot = slot + 1 === end ? 0 : slot + 1) {
      const at = slot * HALVES
      const slotHigh = halves[at + HASH_HIGH] as number
      if (slotHigh === 0) return -1 - slot
      if ((slotHigh & HASH_BITS) === high && halves[at + HASH_LOW] === low) return slot
    }
  }

  /** Assigns a free slot to a key. The slot must still be written. */
  protected claim(slot: number, key: KeyHash, mark: number): void {
    this.#halves[slot * HALVES + HASH_LOW] = key.low
    this.#halves[slot * HALVES + HASH_HIGH] = (key.high & HASH_BITS) | (mark << MARK_SHIFT)
  }

  /** Sets the mark of a used slot. */
  protected setMark(slot: number, mark: number): void {
    const at = slot * HALVES + HASH_HIGH
    this.#halves[at] = ((this.#halves[at] as number) & HASH_BITS) | (mark << MARK_SHIFT)
  }

  protected mark(slot: number): number {
    return this.#half(slot, HASH_HIGH) >>> MARK_SHIFT
  }

  protected isUsed(slot: number): boolean {
    return this.#half(slot, HASH_HIGH) !== 0
  }

  read(slot: number): CounterState {
    const at = slot * WORDS
    const words = this.#words
    const startMs = words[at + START_MS] as number
    const current = words[at + CURRENT] as number
    const previous = words[at + PREVIOUS] as number
    const parts = this.#parts?.[slot]
    return parts === undefined ? { startMs, current, previous } : { startMs, current, previous, parts }
  }

  /** Writes the counts, and marks the client as not being refused. */
  protected put(slot: number, state: CounterState, emptyAtS: number): void {
    const words = this.#words
    const at = slot * WORDS
    words[at + PREVIOUS] = state.previous
    words[at + CURRENT] = state.current
    words[at + START_MS] = state.startMs
    if (this.#parts !== undefined || state.parts !== undefined) this.#writeParts(slot, state.parts)
    this.#halves[2 * at + EMPTY_AT_S] = emptyAtS
    this.#halves[2 * at + RELEASE_AT_S] = 0
  }

  /** Returns when the slot's counter expires, in seconds. */
  protected emptyAtS(slot: number): number {
    return this.#half(slot, EMPTY_AT_S)
  }

  /** Keeps the counter at least until `emptyAtMs`. */
  keep(slot: number, emptyAtMs: number): void {
    this.#halves[slot * HALVES + EMPTY_AT_S] = Math.max(this.emptyAtS(slot), wholeSeconds(emptyAtMs))
  }

  /** Returns until when the slot's client is refused, in seconds, or 0 if it is not refused. */
  protected releaseAtS(slot: number): number {
    return this.#half(slot, RELEASE_AT_S)
  }

  /** Records until when a client is refused, so that its counter is evicted last. */
  block(slot: number, releaseAtMs: number): void {
    this.#halves[slot * HALVES + RELEASE_AT_S] = wholeSeconds(releaseAtMs)
  }

  /**
   * Frees a slot and moves back the keys that were displaced past it. So a search never stops before its key, and the
   * table needs no tombstones. Returns the earliest expiry of the moved keys in seconds, or Infinity if none was
   * moved.
   */
  protected free(slot: number): number {
    const end = this.capacity
    let hole = slot
    let movedEmptyAtS = Number.POSITIVE_INFINITY
    for (
      let next = hole + 1 === end ? 0 : hole + 1;
      this.isUsed(next);
      next = next + 1 === end ? 0 : next + 1
    ) {
      const home = this.#home(this.#halves[next * HALVES + HASH_LOW] as number)
      const displacedBy = (next - home + end) % end
      const behindHole = (next - hole + end) % end
      if (displacedBy < behindHole) continue
      this.#words.copyWithin(hole * WORDS, next * WORDS, (next + 1) * WORDS)
      if (this.#parts !== undefined) this.#parts[hole] = this.#parts[next]
      movedEmptyAtS = Math.min(movedEmptyAtS, this.emptyAtS(hole))
      hole = next
    }
    this.#words.fill(0, hole * WORDS, (hole + 1) * WORDS)
    if (this.#parts !== undefined) this.#parts[hole] = undefined
    return movedEmptyAtS
  }

  /** Changes the number of slots, which must be enough for all keys. Keys move to other slots. */
  protected resize(capacity: number): void {
    const from = this.#halves
    const fromParts = this.#parts
    const slots = this.capacity
    this.capacity = capacity
    this.#words = new Float64Array(capacity * WORDS)
    this.#halves = new Uint32Array(this.#words.buffer)
    this.#parts = fromParts && new Array<string | undefined>(capacity).fill(undefined)
    const to = this.#halves
    for (let slot = 0; slot < slots; slot++) {
      const at = slot * HALVES
      if (from[at + HASH_HIGH] === 0) continue
      const low = from[at + HASH_LOW] as number
      const free = -1 - this.find({ low, high: from[at + HASH_HIGH] as number })
      // Copy the halves. A word of two numbers may be a NaN if it is read as a 64-bit number, and copying a NaN may
      // change its bits.
      for (let half = 0; half < HALVES; half++) to[free * HALVES + half] = from[at + half] as number
      if (this.#parts !== undefined) this.#parts[free] = fromParts?.[slot]
    }
  }

  #writeParts(slot: number, parts: string | undefined): void {
    this.#parts ??= new Array<string | undefined>(this.capacity).fill(undefined)
    this.#parts[slot] = parts
  }

  #half(slot: number, offset: number): number {
    return this.#halves[slot * HALVES + offset] as number
  }

  /** Returns the home slot: the low word scaled from 2^32 to the capacity, which need not be a power of two. */
  #home(low: number): number {
    return Math.floor(low * this.capacity * 2 ** -32)
  }
}

/** Converts milliseconds to whole seconds, rounded up and capped to 32 bits (the year 2106). */
export function wholeSeconds(ms: number): number {
  return Math.min(Math.ceil(ms / 1000), 0xffff_ffff)
}
