import type { CounterState } from "../../algorithms/algorithm.ts"
import type { CounterStates } from "../counters.ts"
import type { KeyHash } from "./key-hash.ts"
import { type OnLoss, Segment } from "./segment.ts"

/** Keys per segment when the table is full. The number is small, because a growing segment moves all its keys in one step. */
const KEYS_PER_SEGMENT = 4096
/**
 * Number of writes between two sweeps. A sweep examines 64 slots, which is four per write. So if every write adds a
 * key, at most a quarter of the slots contain expired keys. If the share were higher, sweeps would remove more keys
 * than are added. In a table that is two thirds full, there are always fewer expired keys than unexpired keys.
 */
const WRITES_PER_SWEEP = 16

/** A low word that does not occur in any key. */
const NO_KEY = -1

/**
 * A table of at most `maxKeys` counter states by hashed key, stored in typed arrays. The table grows, shrinks and is
 * swept one segment at a time, as a side effect of use. So the table needs neither a timer nor an operation that
 * visits all its slots.
 */
export class CounterTable implements CounterStates<KeyHash> {
  readonly #maxKeys: number
  readonly #onLoss: OnLoss
  readonly #segments: (Segment | undefined)[]
  readonly #shift: number
  #size = 0
  #writes = 0
  #swept = 0
  /**
   * The key that was read last, or `NO_KEY` if slots have moved since. A decision reads a key and then writes it, so
   * remembering the slot saves the second search.
   */
  readonly #readKey: KeyHash = { low: NO_KEY, high: 0 }
  #readSlot = 0

  /** `onLoss` is called for each counter that is evicted before it has expired. */
  constructor(maxKeys: number, onLoss: OnLoss) {
    const bits = Math.max(0, Math.ceil(Math.log2(maxKeys / KEYS_PER_SEGMENT)))
    this.#maxKeys = maxKeys
    this.#onLoss = onLoss
    this.#segments = new Array<Segment | undefined>(2 ** bits).fill(undefined)
    this.#shift = 32 - bits
  }

  get size(): number {
    return this.#size
  }

  /** Returns the memory of all used and free slots in bytes. Walks the segments. */
  get bytes(): number {
    return this.#segments.reduce((bytes, segment) => bytes + (segment?.bytes ?? 0), 0)
  }

  read(key: KeyHash): CounterState | undefined {
    const segment = this.#segments[this.#segmentOf(key)]
    if (segment === undefined) return undefined
    const slot = segment.find(key)
    this.#readSlot = slot
    this.#readKey.low = key.low
    this.#readKey.high = key.high
    if (slot < 0) return undefined
    segment.use(slot)
    return segment.read(slot)
  }

  /** Writes the state. Evicts another counter if the table is full. */
  write(key: KeyHash, state: CounterState, emptyAtMs: number, nowMs: number): void {
    const at = this.#segmentOf(key)
    const segment = this.#segments[at] ?? this.#open(at)
    const slot = this.#slotOf(segment, key)
    segment.write(slot < 0 ? this.#insert(segment, at, key, slot, nowMs) : slot, state, emptyAtMs)
    if (++this.#writes % WRITES_PER_SWEEP === 0) this.#sweep(nowMs)
  }

  /** Records that the client is refused until `releaseAtMs`. Does nothing if the table does not contain the counter. */
  block(key: KeyHash, releaseAtMs: number): void {
    const segment = this.#segments[this.#segmentOf(key)]
    if (segment === undefined) return
    const slot = this.#slotOf(segment, key)
    if (slot >= 0) segment.block(slot, releaseAtMs)
  }

  /** Keeps the counter at least until `emptyAtMs`. Does nothing if the table does not contain the counter. */
  keep(key: KeyHash, emptyAtMs: number): void {
    const segment = this.#segments[this.#segmentOf(key)]
    if (segment === undefined) return
    const slot = this.#slotOf(segment, key)
    if (slot >= 0) segment.keep(slot, emptyAtMs)
  }

  remove(key: KeyHash): void {
    const segment = this.#segments[this.#segmentOf(key)]
    if (segment === undefined) return
    const slot = segment.find(key)
    if (slot < 0) return
    segment.remove(slot)
    this.#size--
    this.#readKey.low = NO_KEY
  }

  /** Returns the result of `find` for the key. */
  #slotOf(segment: Segment, key: KeyHash): number {
    const { low, high } = this.#readKey
    return low === key.low && high === key.high ? this.#readSlot : segment.find(key)
  }

  #insert(segment: Segment, at: number, key: KeyHash, found: number, nowMs: number): number {
    this.#readKey.low = NO_KEY
    let free = found
    if (this.#size >= this.#maxKeys) {
      this.#evictNear(at, nowMs)
      free = segment.find(key)
    }
    this.#size++
    return segment.insert(key, free)
  }

  #segmentOf(key: KeyHash): number {
    // In JavaScript, a shift by 32 shifts by 0. A single segment does not need any bits.
    return this.#shift === 32 ? 0 : key.high >>> this.#shift
  }

  #open(at: number): Segment {
    const segment = new Segment(at / this.#segments.length)
    this.#segments[at] = segment
    return segment
  }

  /** Evicts a key from the segment at `at`, or from the next segment with keys if that segment is empty. */
  #evictNear(at: number, nowMs: number): void {
    let segment = this.#segments[at]
    for (let next = at; segment === undefined || segment.count === 0; ) {
      next = (next + 1) % this.#segments.length
      segment = this.#segments[next]
    }
    this.#size--
    segment.evict(nowMs, this.#onLoss)
  }

  #sweep(nowMs: number): void {
    this.#swept = (this.#swept + 1) % this.#segments.length
    const segment = this.#segments[this.#swept]
    if (segment === undefined) return
    this.#size -= segment.sweep(nowMs)
    this.#readKey.low = NO_KEY
  }
}
