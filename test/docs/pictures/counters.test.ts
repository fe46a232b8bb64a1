import { describe, expect, it } from "vitest"
import { runLogin } from "../../../docs/pictures/login.ts"
import { runPlans } from "../../../docs/pictures/plans.ts"
import { runWaiting } from "../../../docs/pictures/waiting.ts"

// The pictures that show counters over time, from runs on a simulated clock.

const MINUTE_MS = 60_000

describe("the picture of a login under attack", () => {
  it("shows the blocks of the recipe, and an owner that is always admitted", async () => {
    const { guesses, blocks, owner } = await runLogin()
    expect(blocks.map(({ forMs }) => forMs / MINUTE_MS)).toEqual([30, 120, 720])
    expect(guesses.at(-1)).toMatchObject({ sent: 900, underLimit: 300, underRecipe: 18 })
    expect(owner.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    // Before the first block, the recipe admits as many passwords as the limit alone.
    const before = guesses.filter(({ atMs }) => atMs < (blocks[0]?.atMs ?? 0))
    expect(before.map(({ underRecipe }) => underRecipe)).toEqual(before.map(({ underLimit }) => underLimit))
    expect(before.at(-1)?.underRecipe).toBe(5)
    // During a block, no password is checked.
    for (const { atMs, forMs } of blocks) {
      const during = guesses.filter((each) => each.atMs >= atMs && each.atMs < atMs + forMs)
      expect(new Set(during.map(({ underRecipe }) => underRecipe)).size).toBe(1)
    }
  })
})

describe("the picture of an account that changes its plan", () => {
  it("shows the page's limits, a new count after the upgrade, and an unchanged count after the edit", async () => {
    const { usage, requests } = await runPlans()
    const at = (seconds: number) => usage.find(({ atMs }) => atMs === 1_000 * seconds)
    expect([at(79), at(80)]).toMatchObject([
      { limit: 5, used: 5 },
      { limit: 8, used: 1 },
    ])
    expect([at(129), at(130)]).toMatchObject([
      { limit: 8, used: 8 },
      { limit: 12, used: 8 },
    ])
    expect(usage.every(({ used, limit }) => used <= limit)).toBe(true)
    expect(requests.filter(({ atMs, allowed }) => atMs < MINUTE_MS && allowed)).toHaveLength(5)
  })
})

describe("the picture of calls that wait in line", () => {
  it("shows one call admitted every 100 ms, and the refusal of calls that have waited 2 s", async () => {
    const calls = await runWaiting()
    const at = (ms: number) => calls.find(({ atMs }) => atMs === ms)
    expect(at(0)).toMatchObject({ called: 35, admitted: 10, refused: 0 })
    for (let ms = 100; ms < 2_000; ms += 100) expect(at(ms)?.admitted).toBe(10 + ms / 100)
    expect(at(2_000)).toMatchObject({ called: 35, admitted: 30, refused: 5 })
    expect(at(4_000)).toMatchObject({ called: 50, admitted: 40, refused: 5 })
    expect(calls.at(-1)).toMatchObject({ called: 50, admitted: 45, refused: 5 })
  })
})
