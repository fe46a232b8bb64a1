import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { ADMITTED, OutcomeCounter, REFUSED } from "./outcome-counter.ts"
import { NOTHING, SECONDS, SLOTS } from "./snapshot.ts"

const SLOT_SECONDS = 300

/** Returns how often each span was counted, oldest first, without the zeros before the first count. */
function expected(spans: readonly number[], last: number, most: number): readonly number[] | undefined {
  const counts = Array.from(
    { length: most },
    (_, i) => spans.filter((span) => span === last - most + 1 + i).length,
  )
  const first = counts.findIndex((count) => count > 0)
  return first < 0 ? undefined : counts.slice(first)
}

describe("an OutcomeCounter", () => {
  it("counts each outcome exactly in the last 300 seconds and in the slots of a day", () => {
    const step = fc.record({
      passed: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 100_000 })),
      outcome: fc.constantFrom(ADMITTED, REFUSED),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), fc.integer({ min: 0, max: 400 }), (steps, rest) => {
        const counter = new OutcomeCounter()
        const seconds: [number[], number[]] = [[], []]
        let second = 5_000_000
        for (const { passed, outcome } of steps) {
          second += passed
          counter.add(outcome, second)
          seconds[outcome as 0 | 1].push(second)
        }
        second += rest
        const sums = { seconds: { ...NOTHING }, slots: { ...NOTHING } }
        counter.addTo(sums, second)
        const read = counter.read(second)
        const sumOf = (counts: readonly number[] = []): number => counts.reduce((sum, each) => sum + each, 0)
        const slotOf = (each: number): number => Math.floor(each / SLOT_SECONDS)
        for (const [outcome, name] of [
          [ADMITTED, "admitted"],
          [REFUSED, "refused"],
        ] as const) {
          expect(sums.seconds[name]).toBe(sumOf(read.seconds[name]))
          expect(sums.slots[name]).toBe(sumOf(read.slots[name]))
          expect(read.seconds[name]).toEqual(expected(seconds[outcome], second, SECONDS))
          expect(read.slots[name]).toEqual(expected(seconds[outcome].map(slotOf), slotOf(second), SLOTS))
        }
      }),
    )
  })

  it("counts a step back of the clock in the latest second, and loses nothing", () => {
    const counter = new OutcomeCounter()
    for (const second of [1_000, 1_001, 990, 991, 1_002]) counter.add(ADMITTED, second)
    expect(counter.read(1_002).seconds).toEqual({ admitted: [1, 3, 1] })
  })
})
