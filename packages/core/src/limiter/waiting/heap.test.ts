import { expect, it } from "vitest"
import { Heap } from "./heap.ts"

class Waiter {
  static looks = 0
  readonly #deadlineMs: number
  constructor(deadlineMs: number) {
    this.#deadlineMs = deadlineMs
  }
  get deadlineMs(): number {
    Waiter.looks++
    return this.#deadlineMs
  }
}

/** Returns a function for pseudo-random integers from 0 to below its argument (Marsaglia's xorshift32). */
function dice(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

it("the first entry always has the earliest deadline, whatever is added or removed", () => {
  const roll = dice(4_711)
  for (let round = 0; round < 300; round++) {
    const deadlines = new Heap<Waiter>(({ deadlineMs }) => deadlineMs)
    const there = new Set<Waiter>()
    for (let i = 0; i < 30; i++) {
      const waiter = new Waiter(roll(50))
      there.add(waiter)
      deadlines.add(waiter)
    }
    // Remove some items at random, and then always the first item.
    const leaving = [...there].filter(() => roll(3) === 0)
    for (const waiter of [...leaving, ...leaving]) {
      there.delete(waiter)
      deadlines.delete(waiter)
    }
    const left: number[] = []
    for (let { first } = deadlines; first !== undefined; { first } = deadlines) {
      left.push(first.deadlineMs)
      deadlines.delete(first)
    }
    expect(left).toEqual([...there].map(({ deadlineMs }) => deadlineMs).sort((one, other) => one - other))
  }
})

it("sorted() returns the entries by their deadlines, whatever the order in which they were added", () => {
  const deadlines = new Heap<number>((deadlineMs) => deadlineMs)
  for (const deadlineMs of [5, 1, 9, 3, 7]) deadlines.add(deadlineMs)
  deadlines.delete(9)
  expect(deadlines.sorted()).toEqual([1, 3, 5, 7])
})

it("a heap compares O(log n) entries in general, and one or two if entries arrive in order of their deadlines", () => {
  const roll = dice(42)
  const deadlines = new Heap<Waiter>(({ deadlineMs }) => deadlineMs)
  Waiter.looks = 0
  const inTurn = Array.from({ length: 4_096 }, (_, i) => new Waiter(i))
  for (const waiter of inTurn) deadlines.add(waiter)
  expect(Waiter.looks).toBeLessThanOrEqual(2 * 4_096)
  const any = Array.from({ length: 4_096 }, () => new Waiter(roll(4_096)))
  for (const waiter of any) deadlines.add(waiter)
  Waiter.looks = 0
  for (const waiter of [...inTurn, ...any]) deadlines.delete(waiter)
  expect(deadlines.first).toBeUndefined()
  // The bound is three comparisons for each of thirteen levels.
  expect(Waiter.looks / (2 * 4_096)).toBeLessThan(3 * 13 + 4)
})

it("a heap compares one or two entries if all deadlines are equal", () => {
  const deadlines = new Heap<Waiter>(({ deadlineMs }) => deadlineMs)
  Waiter.looks = 0
  for (let i = 0; i < 4_096; i++) deadlines.add(new Waiter(1_000))
  expect(Waiter.looks).toBeLessThanOrEqual(2 * 4_096)
})
