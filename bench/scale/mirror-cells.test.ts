import { readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { examples } from "../../test/test-length.ts"
import { mostOfRoaming } from "./mirror-cells.ts"

const STATED = /at most (\d+) in any minute at up to 50 requests per second, (\d+) at 100 and (\d+) at 400\./
/** Requests per second, for each number that the guide states. */
const RATES: readonly (readonly number[])[] = [[50, 33, 20, 10, 5 / 3], [100], [400]]

/** Returns the most units that a client gets in any minute, for each rate. */
async function mostAt(rates: readonly number[], seeds: readonly number[]): Promise<number> {
  const runs = rates.flatMap((rate) => seeds.map((seed) => mostOfRoaming(rate, seed)))
  return Math.max(...(await Promise.all(runs)))
}

it("docs/scale/data-centers.md states the most units that a client gets by using all data centers in turn", async () => {
  const guide = readFileSync(new URL("../../docs/scale/data-centers.md", import.meta.url), "utf8").replace(
    /\s+/g,
    " ",
  )
  const stated = STATED.exec(guide)?.slice(1).map(Number)
  // The guide states the largest numbers over all rates and seeds. `pnpm test` makes only one run for each, which
  // reaches the largest number.
  const seeds = [2, 1, 3].slice(0, examples(1, 3))
  const found = await Promise.all(RATES.map((rates) => mostAt(rates.slice(0, examples(1, 5)), seeds)))
  expect(found).toEqual(stated)
})
