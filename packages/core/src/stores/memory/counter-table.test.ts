import { describe, expect, it } from "vitest"
import type { CounterState } from "../../algorithms/algorithm.ts"
import { CounterTable } from "./counter-table.ts"
import { type KeyHash, keyHasher } from "./key-hash.ts"

const NOW = 1_700_000_000_000
const hash = keyHasher([11, 12])

function keyOf(n: number): KeyHash {
  return hash("c", String(n))
}

function stateOf(n: number): CounterState {
  return { previous: 0, current: n, startMs: NOW }
}

/**
 * Returns a table and its losses. A loss contains the milliseconds until the counter is empty and until its client is
 * released.
 */
function tableOf(maxKeys: number): { table: CounterTable; losses: (readonly [number, number])[] } {
  const losses: (readonly [number, number])[] = []
  return { table: new CounterTable(maxKeys, (...loss) => losses.push(loss)), losses }
}

function fill(table: CounterTable, from: number, to: number, emptyAtMs: number, nowMs: number = NOW): void {
  for (let n = from; n < to; n++) table.write(keyOf(n), stateOf(n), emptyAtMs, nowMs)
}

/** Returns how many of these keys do not have the value that was written. */
function wrong(table: CounterTable, from: number, to: number, step: number): number {
  let count = 0
  for (let n = from; n < to; n += step) if (table.read(keyOf(n))?.current !== n) count++
  return count
}

function present(table: CounterTable, from: number, to: number): number {
  let count = 0
  for (let n = from; n < to; n++) if (table.read(keyOf(n)) !== undefined) count++
  return count
}

describe("a counter table", () => {
  it.each([1, 5_000, 50_000])(
    "with at most %i keys returns the states that were written and not removed",
    (maxKeys) => {
      const { table } = tableOf(maxKeys)
      expect(table.read(keyOf(0))).toBeUndefined()
      table.remove(keyOf(0))
      expect(table.size).toBe(0)
      fill(table, 0, maxKeys, NOW + 60_000)
      expect(wrong(table, 0, maxKeys, 1)).toBe(0)
      table.write(keyOf(0), stateOf(7), NOW + 60_000, NOW)
      expect([table.size, table.read(keyOf(0))]).toEqual([maxKeys, stateOf(7)])
      for (let n = 0; n < maxKeys; n += 2) table.remove(keyOf(n))
      table.remove(keyOf(0))
      expect(table.size).toBe(Math.floor(maxKeys / 2))
      expect(wrong(table, 1, maxKeys, 2)).toBe(0)
    },
  )

  it.each([1, 2, 3, 16, 100, 4_096, 4_097, 10_000, 20_001])(
    "holds at most %i keys, and evicts only when it is full",
    (maxKeys) => {
      const { table } = tableOf(maxKeys)
      const keys = Math.min(3 * maxKeys + 50, 30_000)
      let most = 0
      let lost = 0
      for (let n = 0; n < keys; n++) {
        table.write(keyOf(n), stateOf(n), NOW + 60_000, NOW)
        most = Math.max(most, table.size)
        lost += wrong(table, n, n + 1, 1)
      }
      expect([most, lost]).toEqual([maxKeys, 0])
      expect(table.size).toBe(maxKeys)
      expect(present(table, 0, keys)).toBe(maxKeys)
    },
  )

  it("evicts a key from another segment if the new key's segment is empty", () => {
    // The table has two segments for 5,000 keys, and all keys are in the upper segment.
    const { table } = tableOf(5_000)
    const upper = (n: number) => ({ low: Math.imul(n + 1, 0x9e3779b1) >>> 0, high: 0xffff_ffff - n })
    for (let n = 0; n < 5_000; n++) table.write(upper(n), stateOf(n), NOW + 60_000, NOW)
    const [first, second] = [
      { low: 7, high: 7 },
      { low: 8, high: 8 },
    ]
    table.write(first, stateOf(1), NOW + 90_000, NOW)
    expect([table.size, table.read(first)]).toEqual([5_000, stateOf(1)])
    table.remove(first)
    table.write(upper(5_001), stateOf(2), NOW + 60_000, NOW)
    table.write(second, stateOf(3), NOW + 90_000, NOW)
    expect([table.size, table.read(second)]).toEqual([5_000, stateOf(3)])
  })

  it("skips empty segments, and evicts a key from the next segment that contains keys", () => {
    // The table has four segments for 10,000 keys. All keys are in the third segment, and the first segment is new.
    const { table } = tableOf(10_000)
    const third = (n: number) => ({ low: Math.imul(n + 1, 0x9e3779b1) >>> 0, high: 0x8000_0000 + n })
    for (let n = 0; n < 10_000; n++) table.write(third(n), stateOf(n), NOW + 60_000, NOW)
    const [first, last] = [
      { low: 7, high: 7 },
      { low: 8, high: 0xffff_ffff },
    ]
    table.write(first, stateOf(1), NOW + 90_000, NOW)
    table.write(last, stateOf(2), NOW + 90_000, NOW)
    // After the last segment, the search wraps around to the first segment and evicts its only key.
    expect([table.size, table.read(first), table.read(last)]).toEqual([10_000, undefined, stateOf(2)])
  })

  it("writes a key to its own slot, even if another key was read last", () => {
    const keys = [
      { low: 0, high: 0 },
      { low: 5, high: 6 },
      { low: 5, high: 7 },
      { low: 4, high: 6 },
    ] as const
    const { table } = tableOf(100)
    const states = () => keys.map((key) => table.read(key)?.current)
    for (const [n, key] of keys.entries()) {
      table.write(key, stateOf(n), NOW + 60_000, NOW)
      expect(table.read(keys[0])).toEqual(stateOf(0))
    }
    expect(states()).toEqual([0, 1, 2, 3])
    for (const [n, key] of keys.entries()) {
      for (const other of keys) {
        table.read(other)
        table.write(key, stateOf(n + 10), NOW + 60_000, NOW)
      }
    }
    expect([table.size, ...states()]).toEqual([4, 10, 11, 12, 13])
  })

  // Both keys have the same home slot, so one key moves when the other key is removed.
  const [first, second] = [1, 2].map((high) => ({ low: 5, high })) as [KeyHash, KeyHash]
  const other = { low: 0xffff_0000, high: 9 }

  it("writes a key to its new slot if the removal of another key has moved it", () => {
    const { table } = tableOf(100)
    table.write(first, stateOf(1), NOW + 60_000, NOW)
    table.write(second, stateOf(2), NOW + 60_000, NOW)
    table.read(second)
    table.remove(first)
    table.write(second, stateOf(3), NOW + 60_000, NOW)
    expect([table.size, table.read(second)]).toEqual([1, stateOf(3)])
  })

  it("writes a key to its new slot if the sweep of another key has moved it", () => {
    const { table } = tableOf(100)
    table.write(first, stateOf(1), NOW + 1_000, NOW)
    table.write(second, stateOf(2), NOW + 60_000, NOW)
    const writeOther = () => table.write(other, stateOf(9), NOW + 60_000, NOW + 1_000)
    for (let writes = 2; writes < 15; writes++) writeOther()
    expect(table.size).toBe(3)
    table.read(second)
    writeOther()
    // The sixteenth write has started a sweep.
    expect(table.size).toBe(2)
    table.write(second, stateOf(3), NOW + 60_000, NOW + 1_000)
    expect([table.size, table.read(second)]).toEqual([2, stateOf(3)])
  })

  it("writes a new key to a free slot, even if other keys were added since the lookup", () => {
    const { table } = tableOf(100)
    table.write(other, stateOf(9), NOW + 60_000, NOW)
    table.read(second)
    table.write(first, stateOf(1), NOW + 60_000, NOW)
    table.write(second, stateOf(2), NOW + 60_000, NOW)
    expect([table.size, table.read(first), table.read(second)]).toEqual([3, stateOf(1), stateOf(2)])
    // There are enough keys to make the segment grow.
    table.read(keyOf(40))
    fill(table, 0, 41, NOW + 60_000)
    expect([table.size, wrong(table, 0, 41, 1)]).toEqual([44, 0])
  })

  it("reports evictions of unexpired counters, with the time until the client's release", () => {
    const { table, losses } = tableOf(2)
    fill(table, 0, 1, NOW + 1_000)
    fill(table, 1, 2, NOW + 60_000)
    table.block(keyOf(0), NOW + 500)
    table.block(keyOf(1), NOW + 4_000)
    fill(table, 2, 3, NOW + 50_000, NOW + 1_000)
    expect(losses).toEqual([])
    fill(table, 3, 4, NOW + 60_000, NOW + 1_000)
    expect(losses).toEqual([[49_000, 0]])
    table.block(keyOf(3), NOW + 9_000)
    fill(table, 4, 5, NOW + 60_000, NOW + 1_000)
    expect(losses.slice(1)).toEqual([[59_000, 3_000]])
    expect([table.read(keyOf(1)), table.read(keyOf(3))]).toEqual([undefined, stateOf(3)])
  })

  it("ignores the refusal of a client that has no counter", () => {
    const { table, losses } = tableOf(2)
    table.block(keyOf(0), NOW + 9_000)
    fill(table, 0, 3, NOW + 60_000)
    table.block(keyOf(99), NOW + 9_000)
    expect([table.size, losses]).toEqual([2, [[60_000, 0]]])
  })
})

describe("the memory of a counter table", () => {
  it("is allocated for each segment when the segment's first key is written", () => {
    const { table } = tableOf(5_000)
    expect(table.bytes).toBe(0)
    table.write({ low: 1, high: 1 }, stateOf(1), NOW + 60_000, NOW)
    expect(table.bytes).toBe(8 * 40)
    table.write({ low: 1, high: 0xffff_ffff }, stateOf(1), NOW + 60_000, NOW)
    // The second segment starts with a size halfway to the next size.
    expect(table.bytes).toBe((8 + 10) * 40)
  })

  it("is swept on every 16th write, one segment after another", () => {
    const { table } = tableOf(5_000)
    for (let n = 1; n <= 40; n++) {
      for (const high of [n, 0xffff_ffff - n]) {
        table.write({ low: Math.imul(n, 0x9e3779b1) >>> 0, high }, stateOf(n), NOW + 1_000, NOW)
      }
    }
    const sizes: number[] = []
    for (let n = 0; n < 32; n++) {
      table.write({ low: 3, high: 3 }, stateOf(n), NOW + 60_000, NOW + 1_000)
      sizes.push(table.size)
    }
    expect(sizes).toEqual([...new Array(15).fill(81), ...new Array(16).fill(41), 1])
  })

  it("is at most 60 bytes per key for up to 300,000 keys", () => {
    const { table } = tableOf(300_000)
    const into = { low: 0, high: 0 }
    const state = stateOf(1)
    for (let n = 1; n <= 300_000; n++) {
      hash("c", String(n), into)
      table.write(into, state, NOW + 60_000, NOW)
      if (n % 20_000 === 0) expect(table.bytes / n, `at ${n} keys`).toBeLessThanOrEqual(60)
    }
    expect(table.size).toBe(300_000)
  })

  it("grows one segment at a time", () => {
    const { table } = tableOf(200_000)
    const perKey: number[] = []
    let most = 0
    let before = 0
    for (let n = 0; n < 200_000; n++) {
      table.write(keyOf(n), stateOf(n), NOW + 60_000, NOW)
      if (n % 8 > 0) continue
      const { bytes } = table
      most = Math.max(most, bytes - before)
      before = bytes
      if (n > 50_000) perKey.push(bytes / n)
    }
    // The last step of a segment of 4,096 keys is about 1,400 slots of 40 bytes. Eight writes rarely cause three of
    // these steps.
    expect(most).toBeLessThan(3 * 60_000)
    // If all segments grew together, the size would vary between 49 and 68 bytes per key.
    expect(perKey.reduce((a, b) => Math.max(a, b)) - perKey.reduce((a, b) => Math.min(a, b))).toBeLessThan(4)
  })

  it("is freed by normal writes after a flood of keys has expired", () => {
    const { table } = tableOf(100_000)
    fill(table, 0, 100_000, NOW + 1_000)
    const flooded = table.bytes
    const later = NOW + 1_000
    for (let round = 0; round < 400; round++) fill(table, 1_000_000, 1_000_500, later + 60_000, later)
    expect(table.size).toBe(500)
    expect(present(table, 1_000_000, 1_000_500)).toBe(500)
    expect(table.bytes).toBeLessThan(flooded / 40)
  })

  it("is swept as fast as keys are written, so expired keys do not accumulate", () => {
    const { table } = tableOf(100_000)
    let most = 0
    // A thousand new clients per second are each counted for ten seconds, so 10,000 clients are counted at any time.
    for (let second = 0; second < 90; second++) {
      const nowMs = NOW + second * 1_000
      fill(table, second * 1_000, (second + 1) * 1_000, nowMs + 10_000, nowMs)
      most = Math.max(most, table.size)
    }
    expect(most).toBeLessThan(2 * 10_000)
  })
})
