import { existsSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { redisForTests } from "../servers/redis-for-tests.ts"
import type { Block } from "./blocks.ts"
import { ROOT } from "./documents.ts"
import { rowsOf } from "./failures/guide.ts"
import { lookUpCommands } from "./shell/look-up.ts"

const CHECKLIST = "docs/production/checklist.md"
const page = readFileSync(`${ROOT}${CHECKLIST}`, "utf8")
const outage = readFileSync(`${ROOT}docs/production/redis-fails.md`, "utf8")

const { server } = await redisForTests()

/** Returns the commands in the last column of a table that run this program. */
function commandsOf(rows: readonly string[][], program: string): string[] {
  return rows
    .flatMap((row) => [...(row.at(-1) ?? "").matchAll(/`([^`]+)`/g)].map(([, text = ""]) => text))
    .filter((text) => text.startsWith(`${program} `))
}

describe("the checklist for production", () => {
  const rows = rowsOf(page, "check")

  it("names only codes that have a page", () => {
    const codes = [...page.matchAll(/`(SLUICE_\w+)`/g)].map(([, code = ""]) => code.toLowerCase())
    expect(codes.length).toBeGreaterThan(2)
    expect(codes.filter((code) => !existsSync(`${ROOT}docs/errors/${code}.md`))).toEqual([])
  })

  it("uses only existing flags in its sluice commands", async () => {
    const commands = commandsOf(rows, "sluice").filter((command) => command !== "sluice clients show")
    const block: Block = { document: CHECKLIST, line: 1, language: "sh", text: commands.join("\n") }
    expect(commands.length).toBeGreaterThan(1)
    expect(await lookUpCommands(block)).toEqual([])
  })
})

it.each([
  ...commandsOf(rowsOf(page, "check"), "redis-cli"),
  ...commandsOf(rowsOf(outage, "the message says"), "redis-cli"),
])("a real Redis understands %s", async (command) => {
  // Options belong to redis-cli itself, and HOST and KEY stand for the reader's host and key.
  const words = command
    .replace(/^redis-cli (-h HOST )?/, "")
    .replace("KEY", "sl2:key")
    .split(" ")
  if (words[0]?.startsWith("--")) return
  await expect(server.command(...(words as [string, ...string[]]))).resolves.toBeDefined()
})
