import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { mergeTop, SpaceSaving, type TopKeys } from "./top-keys.ts"

const CAPACITY = 8

/** Keys of which few are frequent. */
const someKeys = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom("a", "b", "c") },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: 40 }).map(String) },
  ),
  { maxLength: 400 },
)

function listOf(keys: readonly string[]): TopKeys {
  const list = new SpaceSaving(CAPACITY, () => undefined)
  for (const key of keys) list.add(key)
  return list.read()
}

function expectBounds({ keys, unlisted }: TopKeys, all: readonly string[]): void {
  const exact = new Map<string, number>()
  for (const key of all) exact.set(key, (exact.get(key) ?? 0) + 1)
  for (const { key, count, error } of keys) {
    const truth = exact.get(key) ?? 0
    expect(count).toBeGreaterThanOrEqual(truth)
    expect(count - error).toBeLessThanOrEqual(truth)
    exact.delete(key)
  }
  for (const truth of exact.values()) expect(truth).toBeLessThanOrEqual(unlisted)
  expect(keys.map(({ count }) => count)).toEqual(
    keys.map(({ count }) => count).sort((one, other) => other - one),
  )
}

describe("SpaceSaving", () => {
  it("never counts too little, and at most its error too much", () => {
    fc.assert(fc.property(someKeys, (keys) => expectBounds(listOf(keys), keys)))
  })

  it("lists every key that was counted more often than a full list requires", () => {
    fc.assert(
      fc.property(someKeys, (keys) => {
        const listed = listOf(keys).keys.map(({ key }) => key)
        for (const key of new Set(keys)) {
          const share = keys.filter((each) => each === key).length
          if (share > keys.length / CAPACITY) expect(listed).toContain(key)
        }
      }),
    )
  })

  it("is exact while no more keys are counted than the list holds", () => {
    const keys = [..."abcabcaah"]
    expect(listOf(keys)).toEqual({
      keys: [
        { key: "a", count: 4, error: 0, place: 0 },
        { key: "b", count: 2, error: 0, place: 1 },
        { key: "c", count: 2, error: 0, place: 2 },
        { key: "h", count: 1, error: 0, place: 3 },
      ],
      unlisted: 0,
    })
  })
})

describe("mergeTop", () => {
  it("keeps the bounds of lists from several processes, also when it leaves keys out", () => {
    fc.assert(
      fc.property(
        fc.array(someKeys, { maxLength: 4 }),
        fc.integer({ min: 1, max: 12 }),
        (processes, most) => {
          const merged = mergeTop(processes.map(listOf), most, (one) => one)
          expect(merged.keys.length).toBeLessThanOrEqual(most)
          expectBounds(merged, processes.flat())
        },
      ),
    )
  })
})
