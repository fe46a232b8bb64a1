import type { CounterState } from "../../algorithms/algorithm.ts"
import type { KeyHash } from "./key-hash.ts"

/**
 * A slot is five 8-byte words, side by side so that a decision touches one or two cache lines:
 * hash | previous | current | startMs | emptyAt and releaseAt in whole seconds, rounded up (32 bits each: to 2106).
 */
const WORDS = 5
const PREVIOUS = 1
const CURRENT = 2
const START_MS = 3
/** The same slot as 32-bit words; a high word of 0 says that it is free. */
const HALVES = 2 * WORDS
const HASH_LOW = 0
const HASH_HIGH = 1
const EMPTY_AT_S = 8
const RELEASE_AT_S = 9

const FEWEST_SLOTS = 8
/**
 * Full to 82 % a segment grows by 22 %: between 67 % and 82 % of its slots are used, so a key takes 49 to 60 bytes.
 * Fuller, and a search for a new key gets long; emptier, and memory is wasted.
 */
const MOST_LOAD = 0.82
const GROWTH = 1.22
/** How many keys an eviction chooses from. */
const CANDIDATES = 16
/** How many slots a sweep examines: side by side, so that it costs little more than the first of them. */
const SWEPT_SLOTS = 64

/**
 * One part of the counter table: an open-addressed hash table (linear probing) of fixed slots in one typed array.
 * Small enough that growing it, the most it ever does at once, takes some tens of microseconds.
 */
export class Segment {
  count = 0
  /** Its size is FEWEST_SLOTS * GROWTH ** this. */
  #growth: number
  #capacity: number
  #words: Float64Array
  #halves: Uint32Array
  /** Of each slot, for states that have some; there is no list while none has. */
  #parts: (string | undefined)[] | undefined
  #hand = 0
  /** No key is empty before: nothing has to be looked at until then. */
  #nothingEmptyBeforeS = Number.POSITIVE_INFINITY
  /** The same for the keys that the hand has passed in this round, and those written since it began. */
  #roundEmptyAtS = Number.POSITIVE_INFINITY

  /** `phase`, from 0 to 1, sets the segments of a table apart, so that they do not all grow at the same moment. */
  constructor(phase: number) {
    this.#growth = phase
    this.#capacity = capacityAt(phase)
    this.#words = new Float64Array(this.#capacity * WORDS)
    this.#halves = new Uint32Array(this.#words.buffer)
  }

  /** Memory of its slots, used and free, without what parts are written in. */
  get bytes(): number {
    return this.#words.byteLength + 8 * (this.#parts?.length ?? 0)
  }

  /**
   * The slot of a key; where it has none, -1 less the free slot that `insert` may put it in. Slots move: a slot is good
   * until the next insertion or removal.
   */
  find(key: KeyHash): number {
    const low = key.low
    const high = markUsed(key.high)
    const halves = this.#halves
    const end = this.#capacity
    // Stryker disable next-line ArithmeticOperator: beyond the end there is nothing either
    for (let slot = this.#home(low); ; slot = slot + 1 === end ? 0 : slot + 1) {
      const at = slot * HALVES
      const slotHigh = halves[at + HASH_HIGH]
      // Stryker disable next-line ArithmeticOperator: it is the first
      if (slotHigh === high && halves[at + HASH_LOW] === low) return slot
      if (slotHigh === 0) return -1 - slot
    }
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

  /** Adds a key that `find` has just not found and yields its slot, still to be written. */
  insert(key: KeyHash, found: number): number {
    let slot = -1 - found
    // Stryker disable next-line EqualityOperator: a key sooner or later
    if (this.count + 1 > this.#capacity * MOST_LOAD) {
      this.#resize(this.#growth + 1)
      slot = this.#freeSlot(key.low)
    }
    // Stryker disable next-line ArithmeticOperator: it is the first
    this.#halves[slot * HALVES + HASH_LOW] = key.low
    this.#halves[slot * HALVES + HASH_HIGH] = markUsed(key.high)
    this.count++
    return slot
  }

  /** Writes the counts; who has just been counted is not being refused. */
  write(slot: number, state: CounterState, emptyAtMs: number): void {
    const words = this.#words
    const at = slot * WORDS
    words[at + PREVIOUS] = state.previous
    words[at + CURRENT] = state.current
    words[at + START_MS] = state.startMs
    if (this.#parts !== undefined || state.parts !== undefined) this.#writeParts(slot, state.parts)
    const emptyAtS = wholeSeconds(emptyAtMs)
    this.#halves[2 * at + EMPTY_AT_S] = emptyAtS
    this.#halves[2 * at + RELEASE_AT_S] = 0
    // Stryker disable next-line EqualityOperator: the same instant
    if (emptyAtS < this.#nothingEmptyBeforeS) this.#nothingEmptyBeforeS = emptyAtS
    // Stryker disable next-line EqualityOperator: the same instant
    if (emptyAtS < this.#roundEmptyAtS) this.#roundEmptyAtS = emptyAtS
  }

  #writeParts(slot: number, parts: string | undefined): void {
    this.#parts ??= new Array<string | undefined>(this.#capacity).fill(undefined)
    this.#parts[slot] = parts
  }

  /** Remembers until when a client is refused, so that it is the last to be evicted. */
  block(slot: number, releaseAtMs: number): void {
    this.#halves[slot * HALVES + RELEASE_AT_S] = wholeSeconds(releaseAtMs)
  }

  /** Keeps what is there until then, when it was to be forgotten sooner. */
  keep(slot: number, emptyAtMs: number): void {
    const at = slot * HALVES + EMPTY_AT_S
    this.#halves[at] = Math.max(this.#halves[at] as number, wholeSeconds(emptyAtMs))
  }

  /** Frees a slot and moves back what was displaced past it, so that no search ends early and no marks pile up. */
  remove(slot: number): void {
    const end = this.#capacity
    let hole = slot
    for (
      let next = hole + 1 === end ? 0 : hole + 1;
      this.#isUsed(next);
      next = next + 1 === end ? 0 : next + 1
    ) {
      const home = this.#home(this.#halves[next * HALVES + HASH_LOW] as number)
      const displacedBy = (next - home + end) % end
      const behindHole = (next - hole + end) % end
      if (displacedBy < behindHole) continue
      this.#words.copyWithin(hole * WORDS, next * WORDS, (next + 1) * WORDS)
      if (this.#parts !== undefined) this.#parts[hole] = this.#parts[next]
      // It may have moved to where the hand has been already.
      this.#roundEmptyAtS = Math.min(this.#roundEmptyAtS, this.#half(hole, EMPTY_AT_S))
      hole = next
    }
    this.#words.fill(0, hole * WORDS, (hole + 1) * WORDS)
    // Stryker disable next-line ConditionalExpression: who takes the slot writes over them; memory holds them until then
    if (this.#parts !== undefined) this.#parts[hole] = undefined
    this.count--
  }

  /** Removes what has expired among the next few slots, and gives memory back after a flood; yields how many. */
  sweep(nowMs: number): number {
    const nowS = Math.floor(nowMs / 1000)
    // Stryker disable next-line ConditionalExpression: it would look, and find nothing
    if (nowS < this.#nothingEmptyBeforeS) return 0
    const before = this.count
    for (let examined = 0; examined < SWEPT_SLOTS; examined++) {
      const slot = this.#advance()
      // Stryker disable next-line ConditionalExpression: it would look for ever, and mostly find nothing
      if (slot === 0) this.#beginRound()
      // What moves into the freed slot is looked at in its place.
      while (this.#isUsed(slot) && this.#half(slot, EMPTY_AT_S) <= nowS) this.remove(slot)
      // Stryker disable next-line ConditionalExpression: a free slot has 0 there, so it would look again, and find nothing
      if (this.#isUsed(slot))
        this.#roundEmptyAtS = Math.min(this.#roundEmptyAtS, this.#half(slot, EMPTY_AT_S))
    }
    // Stryker disable next-line EqualityOperator: a key sooner or later
    const isSparse = this.count < capacityAt(this.#growth - 4) * MOST_LOAD
    if (isSparse && this.#growth >= 4) this.#resize(this.#growth - 3)
    return before - this.count
  }

  /**
   * Removes one key to make room: one that has expired, else of those that are not being refused the one that would
   * be empty first, else the one nearest to its release. Yields the milliseconds that a refused one still had to
   * wait, and 0 for any other.
   */
  evict(nowMs: number): number {
    const nowS = Math.floor(nowMs / 1000)
    let victim = this.#nextUsed()
    for (let candidates = Math.min(CANDIDATES, this.count); candidates > 1; candidates--) {
      const slot = this.#nextUsed()
      if (this.#isBetterVictim(slot, victim, nowS)) victim = slot
    }
    const releaseAtS = this.#blockedUntilS(victim, nowS)
    this.remove(victim)
    return Math.max(0, releaseAtS * 1000 - nowMs)
  }

  #isBetterVictim(slot: number, victim: number, nowS: number): boolean {
    const blockedUntilS = this.#blockedUntilS(slot, nowS)
    const victimBlockedUntilS = this.#blockedUntilS(victim, nowS)
    // Stryker disable next-line EqualityOperator: they are not the same
    if (blockedUntilS !== victimBlockedUntilS) return blockedUntilS < victimBlockedUntilS
    return this.#half(slot, EMPTY_AT_S) < this.#half(victim, EMPTY_AT_S)
  }

  /** 0 for a client that is not being refused, or whose counter has expired. */
  #blockedUntilS(slot: number, nowS: number): number {
    const releaseAtS = this.#half(slot, RELEASE_AT_S)
    return releaseAtS <= nowS || this.#half(slot, EMPTY_AT_S) <= nowS ? 0 : releaseAtS
  }

  #half(slot: number, offset: number): number {
    return this.#halves[slot * HALVES + offset] as number
  }

  #isUsed(slot: number): boolean {
    return this.#half(slot, HASH_HIGH) !== 0
  }

  /** The low word as a share of 2^32, of the capacity: any size will do, not only powers of two. */
  #home(low: number): number {
    return Math.floor(low * this.#capacity * 2 ** -32)
  }

  #freeSlot(low: number): number {
    let slot = this.#home(low)
    // Stryker disable next-line ArithmeticOperator: beyond the end nothing is free either
    while (this.#isUsed(slot)) slot = slot + 1 === this.#capacity ? 0 : slot + 1
    return slot
  }

  #advance(): number {
    this.#hand = this.#hand + 1 >= this.#capacity ? 0 : this.#hand + 1
    return this.#hand
  }

  /** The hand has seen all there is, or been told of it. */
  // Stryker disable next-line BlockStatement: it would look for ever, and mostly find nothing
  #beginRound(): void {
    this.#nothingEmptyBeforeS = this.#roundEmptyAtS
    this.#roundEmptyAtS = Number.POSITIVE_INFINITY
  }

  #nextUsed(): number {
    let slot = this.#advance()
    while (!this.#isUsed(slot)) slot = this.#advance()
    return slot
  }

  #resize(growth: number): void {
    const from = this.#halves
    const fromWords = this.#words
    const fromParts = this.#parts
    const slots = this.#capacity
    // Slots change places, so this round of the hand says nothing about what there is.
    this.#roundEmptyAtS = 0
    this.#growth = growth
    this.#capacity = capacityAt(growth)
    this.#words = new Float64Array(this.#capacity * WORDS)
    this.#halves = new Uint32Array(this.#words.buffer)
    this.#parts = fromParts && new Array<string | undefined>(this.#capacity).fill(undefined)
    const to = this.#words
    const halves = this.#halves
    for (let slot = 0; slot < slots; slot++) {
      const at = slot * HALVES
      // Stryker disable next-line ConditionalExpression: a free slot makes a free slot
      if (from[at + HASH_HIGH] === 0) continue
      // Stryker disable next-line ArithmeticOperator: it is the first
      const free = this.#freeSlot(from[at + HASH_LOW] as number)
      // What is not one number goes by halves: as a 64-bit number it may be a NaN, whose bits a copy need not keep.
      // Stryker disable next-line ArithmeticOperator: it is the first
      halves[free * HALVES + HASH_LOW] = from[at + HASH_LOW] as number
      halves[free * HALVES + HASH_HIGH] = from[at + HASH_HIGH] as number
      to[free * WORDS + PREVIOUS] = fromWords[slot * WORDS + PREVIOUS] as number
      to[free * WORDS + CURRENT] = fromWords[slot * WORDS + CURRENT] as number
      to[free * WORDS + START_MS] = fromWords[slot * WORDS + START_MS] as number
      halves[free * HALVES + EMPTY_AT_S] = from[at + EMPTY_AT_S] as number
      halves[free * HALVES + RELEASE_AT_S] = from[at + RELEASE_AT_S] as number
      // Stryker disable next-line OptionalChaining: there were some where there are some
      if (this.#parts !== undefined) this.#parts[free] = fromParts?.[slot]
    }
  }
}

/** One hash in four thousand million is moved to its neighbour, which costs nothing in collisions. */
function markUsed(high: number): number {
  return high || 1
}

function capacityAt(growth: number): number {
  return Math.ceil(FEWEST_SLOTS * GROWTH ** growth)
}

/** Rounded up and held to 32 bits: a far future that cannot be told apart from the year 2106. */
function wholeSeconds(ms: number): number {
  return Math.min(Math.ceil(ms / 1000), 0xffff_ffff)
}
