import { readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { ALGORITHM_NAMES, ALGORITHMS, readsMember } from "../../packages/core/src/algorithms/kinds.ts"
import { ROOT } from "./documents.ts"

/** Returns the cells of each table row whose first cell names an algorithm, alone or with members in parentheses. */
function rowsOf(document: string): (readonly [name: string, cells: readonly string[]])[] {
  const rows = readFileSync(ROOT + document, "utf8").match(/^\|.*\|$/gm) ?? []
  return rows.flatMap((row) => {
    const cells = row.split("|").map((cell) => cell.trim())
    const [, name] = /^\[?`([a-z-]+)`/.exec(cells[1] ?? "") ?? []
    return ALGORITHM_NAMES.some((each) => each === name) ? [[name as string, cells] as const] : []
  })
}

it("docs/reference/algorithms.md has a row for each algorithm, in order, with its worst case", () => {
  const rows = rowsOf("docs/reference/algorithms.md").slice(0, ALGORITHM_NAMES.length)
  expect(rows.map(([name]) => name)).toEqual(ALGORITHM_NAMES)
  for (const name of ALGORITHM_NAMES) {
    const worst = rows.find(([each]) => each === name)?.[1][4]?.replaceAll("*", "")
    const [, most] = /^((?:\d |burst \+ )?L)(?=[;,]| are |$)/.exec(worst ?? "") ?? []
    expect([name, most]).toEqual([name, ALGORITHMS[name].worstCase])
  }
})

it("docs/rules/rules.md lists all algorithms, and for each member the algorithms that use it", () => {
  const text = readFileSync(`${ROOT}docs/rules/rules.md`, "utf8")
  const cellOf = (member: string): string =>
    new RegExp(`^\\| \`${member}\` \\| ([^|]*) \\|`, "m").exec(text)?.[1] ?? ""
  const namedIn = (cell: string): string[] =>
    [...cell.matchAll(/`(-?[a-z-]+)`/g)].map(([, name = ""]) => name)
  expect(namedIn(cellOf("algorithm"))).toEqual(ALGORITHM_NAMES)
  for (const member of ["align", "buckets", "burst", "refill"] as const) {
    const [users = ""] = cellOf(member).split(" only:")
    const named = namedIn(users).map((name) => (name.startsWith("-") ? `sliding-window${name}` : name))
    expect(named).toEqual(ALGORITHM_NAMES.filter((name) => readsMember(name, member)))
  }
})

it("docs/rules/algorithms.md has a section for each algorithm, with its picture", () => {
  const text = readFileSync(`${ROOT}docs/rules/algorithms.md`, "utf8")
  for (const name of ALGORITHM_NAMES) expect(text, name).toMatch(new RegExp(`^### ${name}\\n\\n!\\[`, "m"))
})
