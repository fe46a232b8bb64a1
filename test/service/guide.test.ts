import { readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { createCommand } from "../../packages/service/src/program/options.ts"

const guide = readFileSync(new URL("../../docs/guides/service.md", import.meta.url), "utf8")
const noop = (): void => undefined

it("the guide lists exactly the flags of the program, with their variables and defaults", () => {
  const rows = guide.split("\n").filter((line) => line.startsWith("| `--"))
  const found = rows.flatMap((row) => {
    const [, flags = "", variables = "", , otherwise = ""] = row.split("|").map((cell) => cell.trim())
    const texts = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, text]) => text)
    return texts(flags).map((flag, i) => [flag, texts(variables)[i], otherwise.replaceAll("`", "")])
  })
  const { options } = createCommand("0", noop, noop)
  const expected = options
    .filter(({ envVar }) => envVar !== undefined)
    .map(({ long, envVar, description }) => [long, envVar, /\(default: (.*)\)$/.exec(description)?.[1]])
  expect(found.map(([flag, variable]) => [flag, variable])).toEqual(
    expected.map(([flag, variable]) => [flag, variable]),
  )
  // The guide rephrases defaults that are words.
  for (const [i, [flag, , value]] of expected.entries()) {
    if (value !== undefined && /^[\w.:-]+$/.test(value)) expect([flag, found[i]?.[2]]).toEqual([flag, value])
  }
})
