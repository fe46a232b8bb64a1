import fc from "fast-check"
import { expect, it } from "vitest"
import { RecordNumbers } from "./record-numbers.ts"

it("RecordNumbers recognizes duplicates and gaps as a set does, in any order", () => {
  const record = fc.tuple(fc.constantFrom("a", "b"), fc.nat(40))
  fc.assert(
    fc.property(fc.array(record, { maxLength: 120 }), (records) => {
      const numbers = new RecordNumbers()
      const seen = new Set<string>()
      for (const [recorder, number] of records) {
        expect(numbers.add(recorder, number)).toBe(!seen.has(`${recorder}-${number}`))
        seen.add(`${recorder}-${number}`)
      }
      const missing = ["a", "b"].map((recorder) => {
        const own = new Set(records.filter(([each]) => each === recorder).map(([, number]) => number))
        return own.size === 0 ? 0 : Math.max(...own) - Math.min(...own) + 1 - own.size
      })
      expect(numbers.missing).toBe((missing[0] as number) + (missing[1] as number))
    }),
    { numRuns: 500 },
  )
})
