import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { GROWING, runPenalty } from "../../../docs/pictures/penalty.ts"
import { ROOT } from "../documents.ts"

// The pictures that show runs on a clock that stands still.

const page = (path: string): string => readFileSync(`${ROOT}docs/${path}`, "utf8")

describe("the picture of blocks that grow", () => {
  it("shows the rule of its page, and blocks as long as the page says", async () => {
    const { refusals, within, for: lengths } = GROWING.penalty
    const text = page("rules/penalties.md")
    expect(text).toContain(
      `refusals: ${refusals},\n    within: "${within}",\n    for: ["${lengths.join('", "')}"]`,
    )
    expect(text).toContain("| 10 minutes | 1 | 10 minutes |")
    const blocks = await runPenalty()
    expect(blocks.map(({ forMs }) => forMs / 60_000)).toEqual([1, 10, 60, 10])
    // Ten requests are admitted, and the twentieth refusal begins the block.
    expect(blocks[0]?.atMs).toBe(29_000)
  })
})
