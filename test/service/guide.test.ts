import { readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { flagOf, ROWS } from "../../packages/service/src/program/settings/settings-table.ts"

const guide = readFileSync(new URL("../../docs/reference/service-settings.md", import.meta.url), "utf8")
const cellsOf = (start: string) =>
  guide
    .split("\n")
    .filter((line) => line.startsWith(start))
    .map((row) => row.split("|").map((cell) => cell.trim()))
const textsIn = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, text]) => text)

it("the guide lists exactly the settings of the program, with their variables and defaults", () => {
  const flags = cellsOf("| `--").flatMap(([, flags = "", variables = "", , otherwise = ""]) =>
    textsIn(flags).map((flag, i) => [flag, textsIn(variables)[i], otherwise.replaceAll("`", "")]),
  )
  const expected = ROWS.flatMap(([, row]) => (row.flags === undefined ? [] : [{ ...row, flags: row.flags }]))
  expect(flags.map(([flag, variable]) => [flag, variable])).toEqual(
    expected.map(({ flags, variable }) => [flagOf(flags), variable]),
  )
  // The guide describes the other defaults in words.
  for (const [i, { variable, otherwise }] of expected.entries()) {
    if (otherwise !== undefined) expect([variable, flags[i]?.[2]]).toEqual([variable, otherwise])
  }
  const secrets = [...cellsOf("| `REDIS_"), ...cellsOf("| `SLUICE_")].map(
    ([, variable = ""]) => textsIn(variable)[0],
  )
  expect(secrets).toEqual(ROWS.flatMap(([, { flags, variable }]) => (flags === undefined ? [variable] : [])))
})
