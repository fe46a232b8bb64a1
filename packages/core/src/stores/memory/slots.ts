import type { CounterState } from "../../algorithms/algorithm.ts"
import type { KeyHash } from "./key-hash.ts"

/**
 * A slot is five 8-byte words, side by side so that a decision touches one or two cache lines:
 * hash and mark | previous | current | startMs | emptyAt and releaseAt in whole seconds, rounded up (32 bits each: to 2106).
 *
 * The mark says when the slot was last used. It takes the place of the top 8 bits of the hash: in a table of a million
 * keys these bits are the number of the segment, and a smaller table needs fewer of them to keep keys apart.
 */
const WORDS = 5
const PREVIOUS = 1
const CURRENT = 2
const START_MS = 3
/** The same slot as 32-bit words. The word with the mark is 0 when the slot is free. */
const HALVES = 2 * WORDS
const HASH_LOW = 0
const HASH_HIGH = 1
const HASH_BITS = 0x00ff_ffff
const MARK_SHIFT = 24
/** Marks are 1 to this, so that the word of a used slot is never 0. */
export const MARKS = 255
const EMPTY_AT_S = 8
const RELEASE_AT_S = 9

/** Slots in one typed array: an open-addressed hash table (linear probing) that whoever fills it keeps from being full. */
export class SlotTable {
  protected capacity: number
  #words: Float64Array
  #halves: Uint32Array
  /** Of each slot, for states that have some; there is no list while none has. */
  #parts: (string | undefined)[] | undefined

  protected constructor(capacity: number) {
    this.capacity = capacity
    this.#words = new Float64Array(capacity * WORDS)
    this.#halves = new Uint32Array(this.#words.buffer)
  }

  /** Memory of its slots, used and free, without what parts are written in. */
  get bytes(): number {
    return this.#words.byteLength + 8 * (this.#parts?.length ?? 0)
  }

  /**
   * The slot of a key; where it has none, -1 less the free slot that it may get. Slots move: a slot is good until the next
   * one is claimed or freed.
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

  /** The first free slot for a key that has none. */
  protected freeFor(low: number): number {
    let slot = this.#home(low)
    while (this.isUsed(slot)) slot = slot + 1 === this.capacity ? 0 : slot + 1
    return slot
  }

  /** Gives a free slot to a key, to be written. */
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

  /** Writes the counts, and that nobody is being refused. */
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

  /** From when on the slot holds nothing, in seconds. */
  protected emptyAtS(slot: number): number {
    return this.#half(slot, EMPTY_AT_S)
  }

  protected setEmptyAtS(slot: number, emptyAtS: number): void {
    this.#halves[slot * HALVES + EMPTY_AT_S] = emptyAtS
  }

  /** Until when its client is refused, in seconds; 0 where it is not. */
  protected releaseAtS(slot: number): number {
    return this.#half(slot, RELEASE_AT_S)
  }

  protected setReleaseAtS(slot: number, releaseAtS: number): void {
    this.#halves[slot * HALVES + RELEASE_AT_S] = releaseAtS
  }

  /**
   * Frees a slot and moves back what was displaced past it, so that no search ends early and no marks pile up. Yields when the
   * first of what was moved is empty, in seconds; Infinity where nothing was.
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

  /** Another number of slots, enough for what is in them; they change places. */
  protected resize(capacity: number): void {
    const from = this.#halves
    const fromWords = this.#words
    const fromParts = this.#parts
    const slots = this.capacity
    this.capacity = capacity
    this.#words = new Float64Array(capacity * WORDS)
    this.#halves = new Uint32Array(this.#words.buffer)
    this.#parts = fromParts && new Array<string | undefined>(capacity).fill(undefined)
    const to = this.#words
    const halves = this.#halves
    for (let slot = 0; slot < slots; slot++) {
      const at = slot * HALVES
      if (from[at + HASH_HIGH] === 0) continue
      const free = this.freeFor(from[at + HASH_LOW] as number)
      // What is not one number goes by halves: as a 64-bit number it may be a NaN, whose bits a copy need not keep.
      halves[free * HALVES + HASH_LOW] = from[at + HASH_LOW] as number
      halves[free * HALVES + HASH_HIGH] = from[at + HASH_HIGH] as number
      to[free * WORDS + PREVIOUS] = fromWords[slot * WORDS + PREVIOUS] as number
      to[free * WORDS + CURRENT] = fromWords[slot * WORDS + CURRENT] as number
      to[free * WORDS + START_MS] = fromWords[slot * WORDS + START_MS] as number
      halves[free * HALVES + EMPTY_AT_S] = from[at + EMPTY_AT_S] as number
      halves[free * HALVES + RELEASE_AT_S] = from[at + RELEASE_AT_S] as number
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

  /** The low word as a share of 2^32, of the capacity: any size will do, not only powers of two. */
  #home(low: number): number {
    return Math.floor(low * this.capacity * 2 ** -32)
  }
}
