import { readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { ROOT } from "../docs/documents.ts"
import { runBoard } from "./board-run.ts"

it("the recorded dashboard contains exactly the values that its queries return for the run", async () => {
  const run = await runBoard()
  expect(JSON.parse(readFileSync(`${ROOT}docs/pictures/dashboard.json`, "utf8"))).toEqual(run)
  // Every panel must show a value above 0.
  for (const { title, series } of run.panels)
    expect([title, series.some(({ values }) => values.some((value) => (value ?? 0) > 0))]).toEqual([
      title,
      true,
    ])
}, 60_000)
