import type { CounterState } from "../../algorithms/algorithm.ts"
import type { KeyHash } from "./key-hash.ts"
import { MARKS, SlotTable, wholeSeconds } from "./slots.ts"

const FEWEST_SLOTS = 8
/**
 * The share of used slots at which a segment grows by 40 %. So 59 % to 82 % of its slots are used, and a key needs 49
 * to 68 bytes. In a table of many segments, which grow at different moments, a key needs 58 bytes on average.
 *
 * With a higher share, the search for a new key would be long, and with a lower share, memory would be wasted. With
 * smaller steps, each new key would on average move four other keys instead of two.
 */
const MOST_LOAD = 0.82
const GROWTH = 1.4
/** Number of keys from which an eviction chooses. */
const CANDIDATES = 16
/** Number of refused clients that an eviction passes over before it considers the newest key. */
const MANY_CANDIDATES = 256
/**
 * The mark advances after capacity / 64 new keys. So an eviction can order two keys by their last use if at least
 * that many new keys were added between the two uses. All marks are used again after about four times as many new
 * keys as the segment has slots.
 */
const SLOTS_PER_MARK = 64
/**
 * Number of slots that a sweep examines. The slots are adjacent, so examining all of them takes little longer than
 * examining the first one.
 */
const SWEPT_SLOTS = 64

/**
 * A callback for an evicted counter. The callback receives two times in milliseconds: how long the counter would
 * still have counted, and how long its client would still have been refused.
 */
export type OnLoss = (emptyAfterMs: number, releaseAfterMs: number) => void

/**
 * A part of the counter table. The segment grows and shrinks with the number of keys, sweeps expired keys and evicts
 * keys. Growing is its longest operation, but a segment is so small that growing takes only tens of microseconds.
 *
 * This class extends the slot table instead of containing it, because an extra object makes a decision up to 10 %
 * slower.
 */
export class Segment extends SlotTable {
  count = 0
  /** The number of growth steps. The capacity is FEWEST_SLOTS * GROWTH ** #growth. */
  #growth: number
  /** Where the next sweep begins. */
  #hand = 0
  /** Where the next eviction begins. */
  #candidate = 0
  /** The mark for slots that are used now. */
  #mark = 1
  #newKeysOfMark = 0
  readonly #newest: KeyHash = { low: 0, high: 0 }
  /** A time before which none of the keys expires. Sweeps do nothing until then. */
  #nothingEmptyBeforeS = Number.POSITIVE_INFINITY
  /**
   * The earliest expiry of the keys that the hand has passed in this round, and of the keys that were written since
   * the round began.
   */
  #roundEmptyAtS = Number.POSITIVE_INFINITY

  /**
   * `phase`, from 0 to 1, varies the size of a table's segments, so that the segments do not all grow at the same
   * moment.
   */
  constructor(phase: number) {
    super(capacityAt(phase))
    this.#growth = phase
  }

  /**
   * Adds a key. `found` is the negative number that `find` returned for the key. Returns the key's slot, which must
   * still be written.
   */
  insert(key: KeyHash, found: number): number {
    let slot = -1 - found
    if (++this.#newKeysOfMark * SLOTS_PER_MARK > this.capacity) this.#beginMark()
    if (this.count + 1 > this.capacity * MOST_LOAD) {
      this.#resizeTo(this.#growth + 1)
      slot = -1 - this.find(key)
    }
    this.claim(slot, key, this.#mark)
    this.#newest.low = key.low
    this.#newest.high = key.high
    this.count++
    return slot
  }

  /** Records that the slot is used now. */
  use(slot: number): void {
    this.setMark(slot, this.#mark)
  }

  /** Writes the counts, and marks the client as not being refused. */
  write(slot: number, state: CounterState, emptyAtMs: number): void {
    const emptyAtS = wholeSeconds(emptyAtMs)
    this.put(slot, state, emptyAtS)
    if (emptyAtS < this.#nothingEmptyBeforeS) this.#nothingEmptyBeforeS = emptyAtS
    if (emptyAtS < this.#roundEmptyAtS) this.#roundEmptyAtS = emptyAtS
  }

  remove(slot: number): void {
    // Freeing the slot may move keys to slots that the hand has already passed.
    this.#roundEmptyAtS = Math.min(this.#roundEmptyAtS, this.free(slot))
    this.count--
  }

  /**
   * Removes expired keys from the next few slots, and frees memory after a flood. Returns how many keys were removed.
   */
  sweep(nowMs: number): number {
    const nowS = Math.floor(nowMs / 1000)
    if (nowS < this.#nothingEmptyBeforeS) return 0
    const before = this.count
    for (let examined = 0; examined < SWEPT_SLOTS; examined++) {
      const slot = this.#hand + 1 >= this.capacity ? 0 : this.#hand + 1
      this.#hand = slot
      if (slot === 0) this.#beginRound()
      // Removing a key may move another key into the slot, so check the slot again.
      while (this.isUsed(slot) && this.emptyAtS(slot) <= nowS) this.remove(slot)
      if (this.isUsed(slot)) this.#roundEmptyAtS = Math.min(this.#roundEmptyAtS, this.emptyAtS(slot))
    }
    let growth = this.#growth
    // Keep one size more than necessary. Otherwise the next key could make the segment grow again.
    while (growth >= 1 && this.count < capacityAt(growth - 2) * MOST_LOAD) growth--
    if (growth < this.#growth) this.#resizeTo(growth)
    return before - this.count
  }

  /**
   * Removes one key to make room. Among 16 keys, it removes an expired one or, if none has expired, the least
   * recently used one. This method removes a refused client only if all clients of the segment are being refused, and
   * then removes the client closest to its release. `onLoss` is called if the counter had not expired.
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

  /**
   * Returns the slot of the newest key if it is a better victim. This way a flood of new keys replaces its own keys,
   * and evictions stay fast.
   */
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

  /** Returns when the client is released, or 0 if it is not being refused or its counter has expired. */
  #refusedUntilS(slot: number, nowS: number): number {
    const releaseAtS = this.releaseAtS(slot)
    return releaseAtS <= nowS || this.emptyAtS(slot) <= nowS ? 0 : releaseAtS
  }

  /** Returns the number of marks since the slot was last used. */
  #age(slot: number): number {
    const age = this.#mark - this.mark(slot)
    return age < 0 ? age + MARKS : age
  }

  #beginMark(): void {
    this.#newKeysOfMark = 0
    this.#mark = this.#mark === MARKS ? 1 : this.#mark + 1
  }

  /**
   * Starts a new round. The expiry of every key is included in `#roundEmptyAtS`, because the hand has passed the key,
   * or `write` or `remove` has recorded it.
   */
  #beginRound(): void {
    this.#nothingEmptyBeforeS = this.#roundEmptyAtS
    this.#roundEmptyAtS = Number.POSITIVE_INFINITY
  }

  /**
   * Returns the next used slot for an eviction. Evictions have their own position, because the hand of the sweeps
   * must not skip slots.
   */
  #nextUsed(): number {
    do this.#candidate = this.#candidate + 1 >= this.capacity ? 0 : this.#candidate + 1
    while (!this.isUsed(this.#candidate))
    return this.#candidate
  }

  #resizeTo(growth: number): void {
    // Keys move to other slots, so this round may miss some of them. Set the earliest expiry to 0, so that the next
    // round examines every key.
    this.#roundEmptyAtS = 0
    this.#growth = growth
    this.resize(capacityAt(growth))
  }
}

function capacityAt(growth: number): number {
  return Math.ceil(FEWEST_SLOTS * GROWTH ** growth)
}
