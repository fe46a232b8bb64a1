import type { CounterState } from "../../algorithms/algorithm.ts"
import type { CounterStates } from "../counters.ts"
import type { KeyHash } from "./key-hash.ts"
import { type OnLoss, Segment } from "./segment.ts"

/** Keys per segment when the table is full: what grows at once stays small. */
const KEYS_PER_SEGMENT = 4096
/**
 * A sweep every so many writes looks at four times as many slots. When each write is of a new key, a quarter of the
 * slots hold expired ones at most, or they would go faster than they come: at two thirds full, fewer than the living.
 */
const WRITES_PER_SWEEP = 16

/** What no key has in its low word. */
const NO_KEY = -1

/**
 * Counter states by hashed key, in at most `maxKeys` slots of typed arrays. Grown, swept and shrunk a segment at a
 * time, as a side effect of use: no timer, and no operation that walks the table.
 */
export class CounterTable implements CounterStates<KeyHash> {
  readonly #maxKeys: number
  readonly #onLoss: OnLoss
  readonly #segments: (Segment | undefined)[]
  readonly #shift: number
  #size = 0
  #writes = 0
  #swept = 0
  /** The key that was read last and what `find` said of it, no key when slots have moved since: a decision reads and then writes. */
  readonly #readKey: KeyHash = { low: NO_KEY, high: 0 }
  #readSlot = 0

  /** `onLoss` hears of each counter that is evicted before it has expired. */
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

  /** Memory of all slots, used and free; walks the segments. */
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

  /** Stores the state, making room where there is none. */
  write(key: KeyHash, state: CounterState, emptyAtMs: number, nowMs: number): void {
    const at = this.#segmentOf(key)
    const segment = this.#segments[at] ?? this.#open(at)
    const slot = this.#slotOf(segment, key)
    segment.write(slot < 0 ? this.#insert(segment, at, key, slot, nowMs) : slot, state, emptyAtMs)
    if (++this.#writes % WRITES_PER_SWEEP === 0) this.#sweep(nowMs)
  }

  /** Remembers that the client is refused until then; nothing when it has no counter. */
  block(key: KeyHash, releaseAtMs: number): void {
    const segment = this.#segments[this.#segmentOf(key)]
    if (segment === undefined) return
    const slot = this.#slotOf(segment, key)
    if (slot >= 0) segment.block(slot, releaseAtMs)
  }

  /** Keeps the counter until then, when it was to be forgotten sooner; nothing when there is none. */
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

  /** What `find` says of the key. */
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
    // Shifting by 32 shifts by nothing in JavaScript, and one segment needs no bits.
    return this.#shift === 32 ? 0 : key.high >>> this.#shift
  }

  #open(at: number): Segment {
    const segment = new Segment(at / this.#segments.length)
    this.#segments[at] = segment
    return segment
  }

  /** Evicts in the segment that needs room, or, when that is empty, in the next one that is not. */
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
