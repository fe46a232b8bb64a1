import { describe, expect, it } from "vitest"
import { DistinctKeys, OWN_SEED, SHARED_SEED } from "./distinct.ts"

function keysOf(from: number, to: number, seed = SHARED_SEED): DistinctKeys {
  const keys = new DistinctKeys(seed)
  for (let i = from; i < to; i++) keys.add(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`)
  return keys
}

describe("DistinctKeys", () => {
  it.each([0, 1, 10, 200, 2_000, 20_000, 300_000])("estimates %d keys within 10 %%", (size) => {
    const estimate = keysOf(0, size).size
    expect(Math.abs(estimate - size)).toBeLessThanOrEqual(size * 0.1)
  })

  it("counts a key once", () => {
    const keys = new DistinctKeys(OWN_SEED)
    for (let i = 0; i < 1_000; i++) keys.add("same")
    expect(keys.size).toBe(1)
  })

  it("estimates the union of several processes as one process would, also through text", () => {
    const merged = DistinctKeys.parse(keysOf(0, 3_000).toString()) as DistinctKeys
    merged.merge(keysOf(2_000, 5_000))
    expect(merged.toString()).toBe(keysOf(0, 5_000).toString())
  })

  it("does not read another text", () => {
    expect(DistinctKeys.parse("AAAA")).toBeUndefined()
  })
})
