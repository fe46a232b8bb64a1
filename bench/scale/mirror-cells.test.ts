import { readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { mostOfRoaming } from "./mirror-cells.ts"

const SEEDS = [1, 2, 3]

async function mostAt(requestsPerSecond: number): Promise<number> {
  const runs = await Promise.all(SEEDS.map((seed) => mostOfRoaming(requestsPerSecond, seed)))
  return Math.max(...runs)
}

it("the guide states how far a client exceeds a limit by using all data centers in turn", async () => {
  const guide = readFileSync(new URL("../../docs/guides/scale.md", import.meta.url), "utf8").replace(
    /\s+/g,
    " ",
  )
  const slow = Math.max(...(await Promise.all([5 / 3, 10, 20, 33, 50].map(mostAt))))
  const [fast, fastest] = [await mostAt(100), await mostAt(400)]
  expect(guide).toContain(
    `at most ${slow} in any minute at up to 50 requests per second, ${fast} at 100 and ${fastest} at 400.`,
  )
})
