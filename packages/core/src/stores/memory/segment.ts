import type { CounterState } from "../../algorithms/algorithm.ts"
import type { KeyHash } from "./key-hash.ts"
import { MARKS, SlotTable } from "./slots.ts"

const FEWEST_SLOTS = 8
/**
 * Full to 82 % a segment grows by 40 %: between 59 % and 82 % of its slots are used, so a key takes 49 to 68 bytes, and 58 in a
 * table of many segments, which grow at different moments. Fuller, and a search for a new key gets long; in smaller steps, and
 * a key that comes pays for moving four others in place of two; emptier, and memory is wasted.
 */
const MOST_LOAD = 0.82
const GROWTH = 1.4
/** How many keys an eviction chooses from. */
const CANDIDATES = 16
/** Refused clients that an eviction passes over before it takes the newest key instead of looking at the whole segment. */
const MANY_CANDIDATES = 256
/**
 * New keys for which the mark stays the same, as a share of the slots: an eviction can tell keys apart whose last uses
 * are as many new keys away from each other. It takes four times as many new keys as there are keys to use up all marks.
 */
const SLOTS_PER_MARK = 64
/** How many slots a sweep examines: side by side, so that it costs little more than the first of them. */
const SWEPT_SLOTS = 64

/** Milliseconds for which an evicted counter would still have counted, and for which its client would have been refused. */
export type OnLoss = (emptyAfterMs: number, releaseAfterMs: number) => void

/**
 * One part of the counter table: slots that become more and fewer with what is in them, and forget what has expired, or
 * whom they have to. Small enough that growing, the most it ever does at once, takes some tens of microseconds.
 *
 * It is the slots, and does not hold them: through one object more a decision takes up to a tenth longer.
 */
export class Segment extends SlotTable {
  count = 0
  /** Its size is FEWEST_SLOTS * GROWTH ** this. */
  #growth: number
  /** Where the next sweep begins. */
  #hand = 0
  /** Where the next eviction begins. */
  #candidate = 0
  /** The mark of what is used now. */
  #mark = 1
  #newKeysOfMark = 0
  readonly #newest: KeyHash = { low: 0, high: 0 }
  /** No key is empty before: nothing has to be looked at until then. */
  #nothingEmptyBeforeS = Number.POSITIVE_INFINITY
  /** The same for the keys that the hand has passed in this round, and those written since it began. */
  #roundEmptyAtS = Number.POSITIVE_INFINITY

  /** `phase`, from 0 to 1, sets the segments of a table apart, so that they do not all grow at the same moment. */
  constructor(phase: number) {
    super(capacityAt(phase))
    this.#growth = phase
  }

  /** Adds a key that `find` has just not found and yields its slot, still to be written. */
  insert(key: KeyHash, found: number): number {
    let slot = -1 - found
    if (++this.#newKeysOfMark * SLOTS_PER_MARK > this.capacity) this.#beginMark()
    if (this.count + 1 > this.capacity * MOST_LOAD) {
      this.#resizeTo(this.#growth + 1)
      slot = this.freeFor(key.low)
    }
    this.claim(slot, key, this.#mark)
    this.#newest.low = key.low
    this.#newest.high = key.high
    this.count++
    return slot
  }

  /** Notes that the slot is used now. */
  use(slot: number): void {
    this.setMark(slot, this.#mark)
  }

  /** Writes the counts; who has just been counted is not being refused. */
  write(slot: number, state: CounterState, emptyAtMs: number): void {
    const emptyAtS = wholeSeconds(emptyAtMs)
    this.put(slot, state, emptyAtS)
    if (emptyAtS < this.#nothingEmptyBeforeS) this.#nothingEmptyBeforeS = emptyAtS
    if (emptyAtS < this.#roundEmptyAtS) this.#roundEmptyAtS = emptyAtS
  }

  /** Remembers until when a client is refused, so that it is the last to be evicted. */
  block(slot: number, releaseAtMs: number): void {
    this.setReleaseAtS(slot, wholeSeconds(releaseAtMs))
  }

  /** Keeps what is there until then, when it was to be forgotten sooner. */
  keep(slot: number, emptyAtMs: number): void {
    this.setEmptyAtS(slot, Math.max(this.emptyAtS(slot), wholeSeconds(emptyAtMs)))
  }

  remove(slot: number): void {
    // What moves may have moved to where the hand has been already.
    this.#roundEmptyAtS = Math.min(this.#roundEmptyAtS, this.free(slot))
    this.count--
  }

  /** Removes what has expired among the next few slots, and gives memory back after a flood; yields how many. */
  sweep(nowMs: number): number {
    const nowS = Math.floor(nowMs / 1000)
    if (nowS < this.#nothingEmptyBeforeS) return 0
    const before = this.count
    for (let examined = 0; examined < SWEPT_SLOTS; examined++) {
      const slot = this.#advance()
      if (slot === 0) this.#beginRound()
      // What moves into the freed slot is looked at in its place.
      while (this.isUsed(slot) && this.emptyAtS(slot) <= nowS) this.remove(slot)
      if (this.isUsed(slot)) this.#roundEmptyAtS = Math.min(this.#roundEmptyAtS, this.emptyAtS(slot))
    }
    let growth = this.#growth
    // A step is left to grow into: what shrinks just as it may would have to grow at the next key.
    while (growth >= 1 && this.count < capacityAt(growth - 2) * MOST_LOAD) growth--
    if (growth < this.#growth) this.#resizeTo(growth)
    return before - this.count
  }

  /**
   * Removes one key to make room: of sixteen keys an expired one, else the least recently used one. A client that is being
   * refused is removed only when every key of the segment is, and then the one nearest to its release. `onLoss` hears of
   * a counter that had not expired.
   */
  evict(nowMs: number, onLoss: OnLoss): void {
    const nowS = Math.floor(nowMs / 1000)
    let victim = this.#nextUsed()
    for (let looked = 1; looked < this.count; looked++) {
      if (looked >= CANDIDATES && this.#refusedUntilS(victim, nowS) === 0) break
      const slot = this.#nextUsed()
      if (this.#isBetterVictim(slot, victim, nowS)) victim = slot
      if (looked === MANY_CANDIDATES) victim = this.#newestOr(victim, nowS)
    }
    const emptyAtS = this.emptyAtS(victim)
    const refusedUntilS = this.#refusedUntilS(victim, nowS)
    this.remove(victim)
    if (emptyAtS > nowS) onLoss(emptyAtS * 1000 - nowMs, Math.max(0, refusedUntilS * 1000 - nowMs))
  }

  /** The newest key if it is a better victim: a flood of new keys then replaces itself, and no eviction takes long. */
  #newestOr(victim: number, nowS: number): number {
    const newest = this.find(this.#newest)
    return newest >= 0 && this.#isBetterVictim(newest, victim, nowS) ? newest : victim
  }

  #isBetterVictim(slot: number, victim: number, nowS: number): boolean {
    const refusedUntilS = this.#refusedUntilS(slot, nowS)
    const victimRefusedUntilS = this.#refusedUntilS(victim, nowS)
    if (refusedUntilS !== victimRefusedUntilS) return refusedUntilS < victimRefusedUntilS
    const emptyAtS = this.emptyAtS(slot)
    const victimEmptyAtS = this.emptyAtS(victim)
    if (emptyAtS <= nowS || victimEmptyAtS <= nowS) return emptyAtS < victimEmptyAtS
    const age = this.#age(slot)
    const victimAge = this.#age(victim)
    return age === victimAge ? emptyAtS < victimEmptyAtS : age > victimAge
  }

  /** 0 for a client that is not being refused, or whose counter has expired. */
  #refusedUntilS(slot: number, nowS: number): number {
    const releaseAtS = this.releaseAtS(slot)
    return releaseAtS <= nowS || this.emptyAtS(slot) <= nowS ? 0 : releaseAtS
  }

  /** Marks since the slot was used. */
  #age(slot: number): number {
    const age = this.#mark - this.mark(slot)
    return age < 0 ? age + MARKS : age
  }

  #beginMark(): void {
    this.#newKeysOfMark = 0
    this.#mark = this.#mark === MARKS ? 1 : this.#mark + 1
  }

  #advance(): number {
    this.#hand = this.#hand + 1 >= this.capacity ? 0 : this.#hand + 1
    return this.#hand
  }

  /** The hand has seen all there is, or been told of it. */
  #beginRound(): void {
    this.#nothingEmptyBeforeS = this.#roundEmptyAtS
    this.#roundEmptyAtS = Number.POSITIVE_INFINITY
  }

  /** The next key for an eviction to look at. Apart from the hand of sweeps, which may not pass a slot unseen. */
  #nextUsed(): number {
    do this.#candidate = this.#candidate + 1 >= this.capacity ? 0 : this.#candidate + 1
    while (!this.isUsed(this.#candidate))
    return this.#candidate
  }

  #resizeTo(growth: number): void {
    // Slots change places, so this round of the hand says nothing about what there is.
    this.#roundEmptyAtS = 0
    this.#growth = growth
    this.resize(capacityAt(growth))
  }
}

function capacityAt(growth: number): number {
  return Math.ceil(FEWEST_SLOTS * GROWTH ** growth)
}

/** Rounded up and held to 32 bits: a far future that cannot be told apart from the year 2106. */
function wholeSeconds(ms: number): number {
  return Math.min(Math.ceil(ms / 1000), 0xffff_ffff)
}
