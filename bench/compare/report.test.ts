import { expect, it, vi } from "vitest"
import { compareFigures, printComparison } from "./report.ts"

const rounds = Array.from({ length: 11 }, (_, round) => ({
  // The machine gets slower during the run, and the ratio rises from 1.0 to 1.2.
  before: new Map([
    ["take", 10 * (round + 1)],
    ["decide: Redis server", 1],
  ]),
  now: new Map([
    ["take", 10 * (round + 1) * (1 + round / 50)],
    ["decide: Redis server", 3],
  ]),
}))

it("compareFigures divides figures of the same round, so a machine that slows down does not change the ratios", () => {
  const [take] = compareFigures(rounds)
  expect(take?.median).toBeCloseTo(1.1)
  expect(take?.p10).toBeCloseTo(1.02)
  expect(take?.p90).toBeCloseTo(1.18)
})

it("printComparison marks a median ratio above 1.05 as missed, except for the Redis server", () => {
  const printed: string[] = []
  vi.spyOn(console, "log").mockImplementation((line = "") => void printed.push(line))
  printComparison(compareFigures(rounds), "abc1234")
  vi.restoreAllMocks()
  const text = printed.join("\n")
  expect(text).toMatch(/take +60\.00 +66\.00 +1\.100 +1\.020 +1\.180/)
  expect(text).toContain("MISSED  take, times abc1234: 1.10, wanted at most 1.05")
  expect(text).not.toMatch(/MISSED.*Redis server/)
})
