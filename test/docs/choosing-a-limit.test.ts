import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { sluice } from "../cli/in-process.ts"
import { trafficLog } from "../fixtures/logs/generate.ts"
import type { Block } from "./blocks.ts"
import { commandLines } from "./shell/words.ts"
import { blocksTestedBy, expectShown } from "./shown.ts"

const [generate, suggest, limits, replay, gate] = blocksTestedBy(
  "test/docs/choosing-a-limit.test.ts",
  "docs/rules/limits.md",
  5,
) as [Block, Block, Block, Block, Block]

const enforced = limits.text.replaceAll(/(, |\n +)shadow: true/g, "")
const before = process.cwd()
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-docs-"))
  process.chdir(folder)
  const [command] = commandLines(generate.text)
  const lines = Number(command?.words[3])
  // The program that the guide starts prints the same output.
  await writeFile("access.log", [...trafficLog({ lines, clients: 5_000 })].join(""))
  await writeFile("limits.yaml", limits.text)
  await writeFile("enforced.yaml", enforced)
  await writeFile("partners.txt", "192.0.2.40\n")
})
afterAll(async () => {
  process.chdir(before)
  await rm(folder, { recursive: true })
})

/** Runs the command of a block, after "$ ", and checks that it prints the output in the block. */
async function expectOutput({ text }: Block): Promise<void> {
  const [command = "", ...lines] = text.split("\n")
  const [line] = commandLines(command.replace("$ ", ""))
  const { out, err, code } = await sluice(line?.words.slice(1) ?? [])
  expect([code, err]).toEqual([0, ""])
  expectShown(lines.join("\n"), out)
}

it("sluice rules suggest prints the limits that docs/rules/limits.md shows, and writes a rules file", async () => {
  await expectOutput(suggest)
  expect(await readFile("rules.yaml", "utf8")).toContain(
    "field: ip, limit: 20, window: 1 minute, shadow: true",
  )
})

it("sluice rules replay prints the result that docs/rules/limits.md shows", async () => {
  await expectOutput(replay)
  expect(await readFile("replay.html", "utf8")).toMatch(/^<!doctype html>/i)
})

it("the CI check in docs/rules/limits.md passes, but fails if a limit is stricter", async () => {
  const [command] = commandLines(gate.text)
  const words = command?.words.slice(1) ?? []
  expect((await sluice(words)).code).toBe(0)
  await writeFile("enforced.yaml", enforced.replace("limit: 60", "limit: 20"))
  const { code, out } = await sluice(words)
  expect(code).toBe(1)
  expect(out).toContain("exceeded: --max-newly-refused 2%")
  expect(out).toContain("exceeded: --never partners.txt: refused: 192.0.2.40")
})
