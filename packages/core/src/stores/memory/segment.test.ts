import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { CounterState } from "../../algorithms/algorithm.ts"
import type { KeyHash } from "./key-hash.ts"
import { Segment } from "./segment.ts"

const NOW = 1_700_000_000_000

/** Returns a state. Every third state has parts. */
function stateOf(n: number): CounterState {
  const state = { previous: n, current: n + 0.5, startMs: NOW + n }
  return n % 3 === 0 ? { ...state, parts: `1${n}` } : state
}

function put(segment: Segment, key: KeyHash, state: CounterState, emptyAtMs: number = NOW + 60_000): void {
  const found = segment.find(key)
  segment.write(found < 0 ? segment.insert(key, found) : found, state, emptyAtMs)
}

function stateIn(segment: Segment, key: KeyHash): CounterState | undefined {
  const slot = segment.find(key)
  return slot < 0 ? undefined : segment.read(slot)
}

/**
 * Evicts a key and returns the loss. The loss contains the milliseconds until the counter is empty and until its
 * client is released. Returns undefined if the counter had expired.
 */
function lossOf(
  segment: Segment,
  nowMs: number = NOW,
): [emptyAfterMs: number, releaseAfterMs: number] | undefined {
  let loss: [number, number] | undefined
  segment.evict(nowMs, (...lost) => {
    loss = lost
  })
  return loss
}

/** Returns deterministic keys that are spread over the segment. */
function keysOf(count: number): KeyHash[] {
  return Array.from({ length: count }, (_, i) => ({
    low: Math.imul(i + 1, 0x9e3779b1) >>> 0,
    high: Math.imul(i + 1, 0x85ebca6b) >>> 0,
  }))
}

describe("a segment", () => {
  // These words of a hash are dangerous, because a search wraps around at both ends and 0 marks a free slot. The
  // halves of a 64-bit NaN may be lost in a copy.
  const lows = fc.oneof(fc.constantFrom(0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff), fc.nat(20))
  const highs = fc.oneof(
    fc.constantFrom(0, 2, 0xffff_ffff, 0x7ff0_0001, 0x7ff8_0000, 0xfff8_0001, 0xfff0_0000),
    fc.integer({ min: 2, max: 6 }),
  )
  const keys = fc.record({ low: lows, high: highs })
  const operations = fc.array(
    fc.tuple(
      fc.constantFrom("put", "put", "put", "put", "remove", "block", "keep", "sweep", "evict"),
      keys,
      fc.integer({ min: -30, max: 60 }),
    ),
    { maxLength: 400 },
  )

  it("contains the same keys as a Map during insertions, removals, sweeps, evictions, growth and shrinking", () => {
    fc.assert(
      fc.property(operations, fc.double({ min: 0, max: 0.99, noNaN: true }), (story, phase) => {
        const segment = new Segment(phase)
        const model = new Map<string, { key: KeyHash; state: CounterState; emptyAtS: number }>()
        let n = 0
        for (const [what, key, seconds] of story) {
          const name = `${key.low}-${key.high}`
          const emptyAtMs = NOW + seconds * 1_000
          if (what === "put") {
            put(segment, key, stateOf(++n), emptyAtMs)
            model.set(name, { key, state: stateOf(n), emptyAtS: emptyAtMs / 1_000 })
          } else if (what === "block") {
            const slot = segment.find(key)
            if (slot >= 0) segment.block(slot, NOW + 5_000)
          } else if (what === "keep") {
            const slot = segment.find(key)
            const kept = model.get(name)
            if (slot >= 0) segment.keep(slot, emptyAtMs)
            if (kept !== undefined) kept.emptyAtS = Math.max(kept.emptyAtS, emptyAtMs / 1_000)
          } else if (what === "remove") {
            const slot = segment.find(key)
            expect(slot >= 0).toBe(model.delete(name))
            if (slot >= 0) segment.remove(slot)
          } else if (what === "sweep") {
            const swept = segment.sweep(NOW)
            const gone = [...model].filter(([, each]) => segment.find(each.key) < 0)
            expect(gone.length).toBe(swept)
            for (const [each, { emptyAtS }] of gone) {
              expect(emptyAtS * 1_000).toBeLessThanOrEqual(NOW)
              model.delete(each)
            }
          } else if (segment.count > 0) {
            lossOf(segment)
            const gone = [...model].filter(([, each]) => segment.find(each.key) < 0)
            expect(gone.length).toBe(1)
            model.delete((gone[0] as (typeof gone)[0])[0])
          }
          expect(segment.count).toBe(model.size)
        }
        for (const { key, state } of model.values()) expect(stateIn(segment, key)).toEqual(state)
      }),
      { seed: 7_101, numRuns: 500 },
    )
  })

  it("finds nothing when it is empty, not even a key whose hash is 0", () => {
    for (const key of [...keysOf(50), { low: 0, high: 0 }, { low: 5, high: 0 }]) {
      expect(new Segment(0).find(key)).toBeLessThan(0)
    }
  })

  it("stores a key whose hash is 0 like any other key", () => {
    const segment = new Segment(0)
    const zero = { low: 0, high: 0 }
    put(segment, zero, stateOf(1))
    for (const [i, key] of keysOf(100).entries()) put(segment, key, stateOf(i))
    expect(stateIn(segment, zero)).toEqual(stateOf(1))
    expect(segment.count).toBe(101)
    segment.remove(segment.find(zero))
    expect(segment.find(zero)).toBeLessThan(0)
    expect(segment.count).toBe(100)
  })

  it("distinguishes keys that share one word of the hash", () => {
    const segment = new Segment(0)
    const keys = [
      { low: 7, high: 8 },
      { low: 7, high: 9 },
      { low: 6, high: 8 },
    ] as const
    for (const [i, key] of keys.entries()) put(segment, key, stateOf(i))
    expect(keys.map((key) => stateIn(segment, key))).toEqual([stateOf(0), stateOf(1), stateOf(2)])
  })

  it("stores counts up to 2^53 - 1 and timestamps exactly", () => {
    const segment = new Segment(0)
    const state = {
      previous: Number.MAX_SAFE_INTEGER,
      current: Number.MAX_SAFE_INTEGER - 1,
      startMs: NOW + 123,
    }
    put(segment, { low: 1, high: 2 }, state)
    expect(stateIn(segment, { low: 1, high: 2 })).toStrictEqual(state)
  })

  it("wraps around from its last slot to its first slot, and finds all keys after growing", () => {
    const segment = new Segment(0)
    const keys = Array.from({ length: 20 }, (_, i) => ({ low: 0xffff_ffff, high: i + 1 }))
    for (const [i, key] of keys.entries()) {
      put(segment, key, stateOf(i))
      expect(keys.slice(0, i + 1).map((each) => stateIn(segment, each))).toEqual(
        keys.slice(0, i + 1).map((_each, n) => stateOf(n)),
      )
    }
  })

  it("stores the parts of a state, and allocates an array for them only when needed", () => {
    const segment = new Segment(0)
    const [one, other] = keysOf(2) as [KeyHash, KeyHash]
    put(segment, one, stateOf(1))
    expect(segment.bytes).toBe(8 * 40)
    put(segment, one, stateOf(3))
    put(segment, other, stateOf(2))
    expect([stateIn(segment, one)?.parts, stateIn(segment, other)?.parts]).toEqual(["13", undefined])
    expect(segment.bytes).toBe(8 * 48)
    put(segment, one, stateOf(4))
    expect(stateIn(segment, one)).toStrictEqual(stateOf(4))
    for (const [i, key] of keysOf(7).entries()) put(segment, key, stateOf(i))
    expect(segment.bytes).toBe(12 * 48)
  })

  it.each([0, 0.25, 0.5, 0.99])(
    "needs 49 to 68 bytes per key when it is large and was created with phase %d",
    (phase) => {
      const segment = new Segment(phase)
      const most = { atLeast: 1_000, bytes: 0 }
      const least = { bytes: 1_000 }
      for (const key of keysOf(5_000)) {
        put(segment, key, stateOf(1))
        if (segment.count < most.atLeast) continue
        most.bytes = Math.max(most.bytes, segment.bytes / segment.count)
        least.bytes = Math.min(least.bytes, segment.bytes / segment.count)
      }
      expect(most.bytes).toBeLessThan(68.5)
      expect(least.bytes).toBeGreaterThan(48)
    },
  )
})

/** Returns keys whose home slots are these slots of a segment with `capacity` slots. */
function keysAt(slots: readonly number[], capacity: number): KeyHash[] {
  return slots.map((slot) => ({ low: Math.ceil((slot * 2 ** 32) / capacity), high: 1_000 + slot }))
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i)
}

describe("a sweep", () => {
  it("removes a key only after the latest expiry that was set for it", () => {
    const segment = new Segment(0)
    const [one, ...others] = keysOf(4) as [KeyHash, ...KeyHash[]]
    put(segment, one, stateOf(1), NOW + 60_000)
    segment.keep(segment.find(one), NOW + 1_000)
    segment.keep(segment.find(one), NOW + 90_000)
    segment.keep(segment.find(one), NOW + 70_000)
    // In each sweep, one of the other keys has expired, because a sweep only examines slots if a key has expired.
    const seen = [2_000, 89_000, 90_000].map((afterMs, i) => {
      put(segment, others[i] as KeyHash, stateOf(2), NOW + 1_000)
      segment.sweep(NOW + afterMs)
      return segment.find(one) >= 0
    })
    expect(seen).toEqual([true, true, false])
  })

  it("examines at most 64 slots", () => {
    const segment = new Segment(0)
    for (const [i, key] of keysOf(5_000).entries()) put(segment, key, stateOf(i), NOW)
    const swept = Array.from({ length: 30 }, () => segment.sweep(NOW))
    expect(Math.max(...swept)).toBeLessThanOrEqual(64)
    expect(Math.min(...swept)).toBeGreaterThan(16)
    const dense = new Segment(8)
    for (const [i, key] of keysAt(range(1, 70), 119).entries()) put(dense, key, stateOf(i), NOW)
    expect([dense.sweep(NOW), dense.count]).toEqual([64, 6])
  })

  it("shrinks a segment to one size above the smallest that fits, but not below the initial size", () => {
    const bytesWith = (phase: number, keys: number, left: number) => {
      const segment = new Segment(phase)
      for (const [i, key] of keysOf(keys).entries())
        put(segment, key, stateOf(1), i < left ? NOW + 60_000 : NOW)
      for (let i = 0; i < 10; i++) segment.sweep(NOW)
      return [segment.count, segment.bytes / 40]
    }
    // The sizes are 8, 12, 16 and 22 slots, with room for 6, 9, 13 and 18 keys.
    expect(bytesWith(0, 14, 10)).toEqual([10, 22])
    expect(bytesWith(0, 14, 9)).toEqual([9, 16])
    expect(bytesWith(0, 14, 6)).toEqual([6, 12])
    expect(bytesWith(0, 14, 1)).toEqual([1, 8])
    expect(bytesWith(0.5, 14, 1)).toEqual([1, 10])
  })

  it.each([
    ["a key is removed at a whole-second expiry", NOW, true],
    ["a key is kept until a millisecond before the next second", NOW + 999, false],
    ["a key is removed at the next second", NOW + 1_000, true],
  ])("rounds an expiry up to whole seconds: %s", (_when, sweptAt, isGone) => {
    const segment = new Segment(0)
    const key = { low: 9, high: 9 }
    put(segment, key, stateOf(1), sweptAt <= NOW ? NOW : NOW + 1)
    segment.sweep(sweptAt)
    segment.sweep(sweptAt)
    expect(segment.find(key) < 0).toBe(isGone)
  })

  it("keeps unexpired keys, even if they expire after the year 2106", () => {
    const segment = new Segment(0)
    put(segment, { low: 1, high: 1 }, stateOf(1), NOW + 1_000)
    put(segment, { low: 2, high: 1 }, stateOf(2), Number.MAX_SAFE_INTEGER)
    for (let i = 0; i < 10; i++) segment.sweep(NOW)
    expect(segment.count).toBe(2)
  })

  it("removes all expired keys when it is repeated, and frees their memory", () => {
    const segment = new Segment(0)
    const empty = segment.bytes
    for (const [i, key] of keysOf(5_000).entries()) put(segment, key, stateOf(i), NOW + (i < 20 ? 60_000 : 0))
    const full = segment.bytes
    for (let i = 0; i < 1_000; i++) segment.sweep(NOW)
    expect(segment.count).toBe(20)
    expect(segment.bytes).toBeLessThan(full / 50)
    for (const [i, key] of keysOf(20).entries()) expect(stateIn(segment, key)).toEqual(stateOf(i))
    for (let i = 0; i < 1_000; i++) segment.sweep(NOW + 60_000)
    expect(segment.count).toBe(0)
    expect(segment.bytes).toBeLessThan(4 * empty)
  })

  it("does not shrink a segment that would have to grow again soon", () => {
    const segment = new Segment(0)
    for (const [i, key] of keysOf(1_000).entries()) put(segment, key, stateOf(i))
    const grown = segment.bytes
    for (const key of keysOf(200)) segment.remove(segment.find(key))
    for (let i = 0; i < 200; i++) segment.sweep(NOW)
    expect(segment.bytes).toBe(grown)
  })
})

describe("the time before which a sweep examines nothing", () => {
  it("never hides an expired key, despite writes, removals and growth between sweeps", () => {
    const step = fc.record({
      low: fc.nat(0xffff_ffff),
      lifeS: fc.constantFrom(1, 5, 40, 90),
      removes: fc.boolean(),
      sweeps: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 200 }), (steps) => {
        const segment = new Segment(0)
        const emptyAtMs = new Map<number, number>()
        let nowMs = NOW
        const sweep = (): void => {
          segment.sweep(nowMs)
          for (const [i, atMs] of emptyAtMs) {
            const gone = segment.find({ low: (steps[i] as { low: number }).low, high: i + 1 }) < 0
            if (gone) expect(atMs).toBeLessThanOrEqual(nowMs)
            if (gone) emptyAtMs.delete(i)
          }
        }
        for (const [i, { low, lifeS, removes, sweeps }] of steps.entries()) {
          nowMs += 1_000
          put(segment, { low, high: i + 1 }, stateOf(i), nowMs + lifeS * 1000)
          emptyAtMs.set(i, nowMs + lifeS * 1000)
          const earlier = segment.find({ low: (steps[i >> 1] as { low: number }).low, high: (i >> 1) + 1 })
          if (removes && earlier >= 0) {
            segment.remove(earlier)
            emptyAtMs.delete(i >> 1)
          }
          if (sweeps) sweep()
        }
        // At each later time, after the current round and one complete round, only keys that have not expired are
        // left.
        for (let second = 0; second <= 91; second += 6) {
          nowMs += 6_000
          for (let sweeps = 0; sweeps < 14; sweeps++) sweep()
          expect(segment.count).toBe([...emptyAtMs.values()].filter((atMs) => atMs > nowMs).length)
        }
      }),
      { seed: 7_203, numRuns: 500 },
    )
  })
})

describe("a sweep whose hand is halfway around", () => {
  const CAPACITY = 166
  const LASTING = NOW + 900_000

  /**
   * Returns a segment in its second round, in which the hand has examined slots 0 to 90. The segment contains lasting
   * keys in slots 60 to 129, and the keys of `more`.
   */
  function halfSwept(more: readonly (readonly [key: KeyHash, emptyAtMs: number])[] = []): Segment {
    const segment = new Segment(9)
    const expired = keysAt([150], CAPACITY)[0] as KeyHash
    for (const key of keysAt(range(60, 129), CAPACITY)) put(segment, key, stateOf(1), LASTING)
    for (const [key, emptyAtMs] of [...more, [expired, NOW + 1_000] as const]) {
      put(segment, key, stateOf(1), emptyAtMs)
    }
    expect(segment.bytes).toBe(CAPACITY * 40)
    for (let sweeps = 0; sweeps < 4; sweeps++) segment.sweep(NOW + 2_000)
    return segment
  }

  function sweepRound(segment: Segment, afterMs: number): void {
    for (let slots = 0; slots < CAPACITY; slots += 64) segment.sweep(NOW + afterMs)
  }

  it("removes keys that were written behind the hand, including the key that expires first", () => {
    const segment = halfSwept()
    const [first, second] = keysAt([20, 22], CAPACITY) as [KeyHash, KeyHash]
    put(segment, first, stateOf(1), NOW + 10_000)
    put(segment, second, stateOf(2), NOW + 500_000)
    const left = [3_000, 10_000, 500_000].map((afterMs) => {
      sweepRound(segment, afterMs)
      return [first, second].map((key) => stateIn(segment, key) !== undefined)
    })
    expect(left).toEqual([
      [true, true],
      [false, true],
      [false, false],
    ])
  })

  it("removes a key that moved behind the hand when another key was removed", () => {
    const [there] = keysAt([90], CAPACITY) as [KeyHash]
    // This key is in slot 130, because the slots from 90 on are taken.
    const displaced = { ...there, high: 7 }
    const segment = halfSwept([[displaced, NOW + 10_000]])
    segment.remove(segment.find(there))
    sweepRound(segment, 3_000)
    sweepRound(segment, 10_000)
    expect(stateIn(segment, displaced)).toBeUndefined()
  })

  it("removes in later rounds the keys that had not expired when the hand passed them", () => {
    const segment = halfSwept()
    sweepRound(segment, 3_000)
    expect(segment.count).toBe(70)
    // Between the rounds, the segment shrinks and the remaining keys move to other slots.
    for (let rounds = 0; rounds < 2; rounds++) sweepRound(segment, 900_000)
    expect(segment.count).toBe(0)
  })
})

describe("evict()", () => {
  /** A key with its expiry and release in seconds from now. A key that is used again is used after all other keys. */
  interface Kept {
    readonly emptyInS: number
    readonly releaseInS?: number
    readonly isUsedAgain?: boolean
  }

  /** Adds the keys one after another and evicts them all. Returns the order of the evictions and the losses. */
  function evictAll(kept: readonly Kept[]): { order: number[]; losses: (readonly number[] | undefined)[] } {
    const segment = new Segment(0)
    const keys = keysOf(kept.length)
    for (const [i, { emptyInS, releaseInS = 0 }] of kept.entries()) {
      const key = keys[i] as KeyHash
      put(segment, key, stateOf(i), NOW + emptyInS * 1_000)
      if (releaseInS > 0) segment.block(segment.find(key), NOW + releaseInS * 1_000)
    }
    for (const [i, { isUsedAgain }] of kept.entries()) {
      if (isUsedAgain === true) segment.use(segment.find(keys[i] as KeyHash))
    }
    const order: number[] = []
    const losses: (readonly number[] | undefined)[] = []
    while (segment.count > 0) {
      losses.push(lossOf(segment))
      order.push(keys.findIndex((key, i) => !order.includes(i) && segment.find(key) < 0))
    }
    return { order, losses }
  }

  it("removes expired keys first, then the least recently used keys, and finally refused clients by release time", () => {
    const { order, losses } = evictAll([
      { emptyInS: 90, releaseInS: 50 },
      { emptyInS: 90 },
      { emptyInS: 90, releaseInS: 20 },
      { emptyInS: -5 },
      { emptyInS: 10 },
      { emptyInS: 70, releaseInS: 60 },
      { emptyInS: 100 },
    ])
    expect(order).toEqual([3, 1, 4, 6, 2, 0, 5])
    expect(losses).toEqual([
      undefined,
      [90_000, 0],
      [10_000, 0],
      [100_000, 0],
      [90_000, 20_000],
      [90_000, 50_000],
      [70_000, 60_000],
    ])
  })

  it("prefers keys that were not used again, and otherwise the key that expires first", () => {
    const { order } = evictAll([
      { emptyInS: 30, isUsedAgain: true },
      { emptyInS: 20, isUsedAgain: true },
      { emptyInS: 90 },
      { emptyInS: 80 },
    ])
    expect(order).toEqual([2, 1, 0, 3])
  })

  it("treats a client as not refused after its release, and an expired counter of a refused client as expired", () => {
    const segment = new Segment(0)
    const [released, expired, blocked, idle] = keysOf(4) as [KeyHash, KeyHash, KeyHash, KeyHash]
    put(segment, released, stateOf(1), NOW + 60_000)
    segment.block(segment.find(released), NOW + 2_000)
    put(segment, idle, stateOf(4), NOW + 61_000)
    put(segment, expired, stateOf(2), NOW + 2_000)
    segment.block(segment.find(expired), NOW + 9_000)
    put(segment, blocked, stateOf(3), NOW + 60_000)
    segment.block(segment.find(blocked), NOW + 9_000)
    expect([lossOf(segment, NOW + 2_000), stateIn(segment, expired)]).toEqual([undefined, undefined])
    expect([lossOf(segment, NOW + 2_000), stateIn(segment, released)]).toEqual([[58_000, 0], undefined])
    expect([lossOf(segment, NOW + 2_000), stateIn(segment, idle)]).toEqual([[59_000, 0], undefined])
    expect([lossOf(segment, NOW + 2_000), stateIn(segment, blocked)]).toEqual([[58_000, 7_000], undefined])
  })

  it("treats a client that was admitted after a refusal as not refused", () => {
    const segment = new Segment(0)
    const key = { low: 1, high: 1 }
    put(segment, key, stateOf(1))
    segment.block(segment.find(key), NOW + 9_000)
    put(segment, key, stateOf(2))
    expect(lossOf(segment)).toEqual([60_000, 0])
  })

  it("follows the order of expiry, use and release for any set of keys", () => {
    const kept = fc.record({ emptyInS: fc.integer({ min: -5, max: 60 }), releaseInS: fc.nat(60) })
    fc.assert(
      fc.property(fc.array(kept, { minLength: 1, maxLength: 16 }), (all) => {
        const { order, losses } = evictAll(all)
        const rankOf = (i: number) => {
          const { emptyInS, releaseInS } = all[i] as Required<Kept>
          if (emptyInS <= 0) return emptyInS
          return releaseInS > 0 ? 1_000_000 + releaseInS * 1_000 : 1_000 + i
        }
        const ranks = order.map(rankOf)
        expect(ranks).toEqual([...ranks].sort((a, b) => a - b))
        const live = all.filter(({ emptyInS }) => emptyInS > 0)
        const refused = live.filter(({ releaseInS }) => releaseInS > 0)
        expect(losses.filter((loss) => loss !== undefined)).toHaveLength(live.length)
        expect(losses.filter((loss) => (loss?.[1] ?? 0) > 0)).toHaveLength(refused.length)
      }),
      { seed: 7_102, numRuns: 500 },
    )
  })

  it("chooses among the next 16 keys, and removes the first of several equal keys", () => {
    const evictedFrom = (emptyAtMs: (slot: number) => number): number[] => {
      const segment = new Segment(13)
      const slots = range(1, 60)
      const keys = keysAt(slots, 107)
      for (const slot of slots) put(segment, keys[slot - 1] as KeyHash, stateOf(slot), emptyAtMs(slot))
      for (const key of keys) segment.use(segment.find(key))
      return [1, 2].flatMap(() => {
        const before = slots.filter((slot) => segment.find(keys[slot - 1] as KeyHash) >= 0)
        lossOf(segment)
        return before.filter((slot) => segment.find(keys[slot - 1] as KeyHash) < 0)
      })
    }
    expect(evictedFrom((slot) => NOW + 900_000 - slot * 1_000)).toEqual([16, 32])
    expect(evictedFrom(() => NOW + 900_000)).toEqual([1, 17])
  })

  it("searches for at most one round if all clients that it examines are refused", () => {
    const segment = new Segment(0)
    const keys = keysOf(1_000)
    for (const [i, key] of keys.entries()) {
      put(segment, key, stateOf(i))
      if (i !== 700) segment.block(segment.find(key), NOW + 60_000 + ((i * 7) % 1_000) * 1_000)
    }
    expect([lossOf(segment), segment.find(keys[700] as KeyHash)]).toEqual([[60_000, 0], expect.any(Number)])
    expect(segment.find(keys[700] as KeyHash)).toBeLessThan(0)
    expect(lossOf(segment)).toEqual([60_000, 60_000])
  })

  it("keeps a key that is used once per n / 2 new keys in a segment of n keys", () => {
    const segment = new Segment(0)
    const keys = keysOf(21_000)
    const [regular, ...others] = keys as [KeyHash, ...KeyHash[]]
    put(segment, regular, stateOf(1))
    for (const [i, key] of others.entries()) {
      if (segment.count >= 1_000) lossOf(segment)
      put(segment, key, stateOf(1))
      if (i % 500 < 499) continue
      expect(segment.find(regular), `after ${i} new keys`).toBeGreaterThanOrEqual(0)
      segment.use(segment.find(regular))
    }
  })

  it("does not hide the keys that it examines from later sweeps", () => {
    const segment = new Segment(9)
    const early = keysAt(range(60, 75), 166)
    const all = [...keysAt([20], 166), ...early, ...keysAt(range(80, 160), 166)]
    for (const [i, key] of all.entries()) {
      const lifeS = i === 0 ? 1 : i <= early.length ? 2 : 900
      put(segment, key, stateOf(i), NOW + lifeS * 1_000)
    }
    // Sweep for a whole round, and for the next round up to slot 26.
    for (let i = 0; i < 3; i++) segment.sweep(NOW + 1_000)
    // The eviction examines the sixteen keys that the sweeps would examine next.
    lossOf(segment, NOW + 1_000)
    for (let i = 0; i < 3; i++) segment.sweep(NOW + 1_000)
    for (let i = 0; i < 6; i++) segment.sweep(NOW + 2_000)
    expect(early.filter((key) => segment.find(key) >= 0)).toEqual([])
  })
})
