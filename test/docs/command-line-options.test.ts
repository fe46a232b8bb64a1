import { readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { sluice } from "../cli/in-process.ts"
import { ROOT } from "./documents.ts"

const pageOf = (name: string): string => readFileSync(`${ROOT}docs/reference/${name}.md`, "utf8")
const commandLine = pageOf("command-line")
const replay = pageOf("replay")

/**
 * Returns the text between a heading and the next heading. Without a name, returns the text before the first heading.
 */
function sectionOf(page: string, heading = ""): string {
  const sections = page.split(/^## /m)
  return (heading === "" ? sections[0] : sections.find((each) => each.startsWith(heading))) ?? ""
}

const common = sectionOf(commandLine)
const ofTable = common + sectionOf(commandLine, "push, pull")
const places: readonly (readonly [command: string, text: string])[] = [
  ["check", common],
  ["match", common + sectionOf(commandLine, "match")],
  ["replay", replay],
  ["suggest", replay],
  ...["push", "pull", "diff", "list", "remove", "create-table"].map((each) => [each, ofTable] as const),
]

it.each(places)("docs/reference has a row for each option of sluice rules %s", async (command, text) => {
  const { out } = await sluice(["rules", command, "--help"])
  const [, options = ""] = /^Options:\n((?: .*\n)+)/m.exec(out) ?? []
  const flags = [...options.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map(([, flag = ""]) => flag)
  expect(flags.length).toBeGreaterThan(1)
  const rows = text.match(/^\|.*\|$/gm)?.join("\n") ?? ""
  const missing = flags.filter((flag) => flag !== "--help" && !new RegExp(`\`${flag}[\` ]`).test(rows))
  expect(missing).toEqual([])
})
