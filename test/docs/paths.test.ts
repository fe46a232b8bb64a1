import { readFileSync } from "node:fs"
import { createLimiter } from "@sluice/core"
import { expect, it, onTestFinished } from "vitest"
import { ROOT } from "./documents.ts"

const page = readFileSync(`${ROOT}docs/rules/paths.md`, "utf8")
const codeIn = (cell = ""): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code)
const [, table = ""] = /^\| pattern .*\n.*\n((?:\|.*\n)+)/m.exec(page) ?? []
const rows = table
  .trim()
  .split("\n")
  .map((row) => row.split("|").map(codeIn))

it("docs/rules/paths.md shows at least four patterns", () => {
  expect(rows.length).toBeGreaterThanOrEqual(4)
})

it.each(rows)(
  "the pattern in row %# of docs/rules/paths.md matches exactly the paths that its row lists as matches",
  async (...cells) => {
    const [, [path = ""] = [], covered = [], others = []] = cells
    const limiter = createLimiter({ limit: 9, window: "1 minute", match: { path } })
    onTestFinished(() => limiter.close())
    expect(covered.length * others.length).toBeGreaterThan(0)
    for (const url of [...covered, ...others]) {
      const { checks } = await limiter.decide({ method: "GET", url, remoteAddress: "192.0.2.1" })
      expect([path, url, checks.length]).toEqual([path, url, covered.includes(url) ? 1 : 0])
    }
  },
)
