import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { ENGINES } from "./engines.ts"
import { countsOf, GROUP_NAMES, groupOf, tableOf } from "./table.ts"

const ROOT = fileURLToPath(new URL("../..", import.meta.url))

describe("the command test:engines", () => {
  it("rejects an unknown word with one line that lists the engines and groups", () => {
    const tsx = `${ROOT}node_modules/.bin/tsx`
    const { status, stderr } = spawnSync(tsx, [`${ROOT}test/engines/main.ts`, "valkey-9"], {
      encoding: "utf8",
    })
    expect([status, stderr]).toEqual([
      1,
      expect.stringMatching(/^valkey-9 is not an engine or a group: use redis-7\.0, .*, contracts, .*\n$/),
    ])
  })

  it("has at least one file of tests in each group", () => {
    const groups = new Set(
      readdirSync(`${ROOT}test/redis`)
        .filter((name) => name.endsWith(".test.ts"))
        .map(groupOf),
    )
    expect([...groups].sort()).toEqual([...GROUP_NAMES].sort())
  })

  it.each(["README.md", "docs/production/redis.md", "CONTRIBUTING.md"])(
    "tests the engines that %s names",
    (page) => {
      const named = readFileSync(`${ROOT}${page}`, "utf8").replaceAll(/\s+/g, " ")
      const versions = (product: string): string =>
        ENGINES.filter(({ name }) => name.startsWith(product))
          .map(({ name }) => name.split(" ")[1])
          .join(" and ")
      expect(named).toMatch(new RegExp(`Redis ${versions("Redis")},? and (on )?Valkey ${versions("Valkey")}`))
    },
  )
})

describe("the table of test:engines", () => {
  const tests = (...statuses: string[]) => statuses.map((status) => ({ status }))
  const report = {
    testResults: [
      {
        name: "/a/test/redis/leases.test.ts",
        status: "passed",
        assertionResults: tests("passed", "pending"),
      },
      { name: "/a/test/redis/layout.test.ts", status: "failed", assertionResults: tests("passed", "failed") },
      { name: "/a/test/redis/cluster.test.ts", status: "failed", assertionResults: [] },
    ],
  }

  it("counts a failed test once, a file that did not load as a failed test, and no skipped test", () => {
    expect(countsOf(report)).toEqual([2, 4])
    expect(countsOf(report, "cluster")).toEqual([0, 1])
  })

  it("has a row for each engine and a column for each group that ran", () => {
    expect(tableOf([{ engine: "Redis 8.0.2", report }])).toEqual([
      "engine       cluster  leases  counting  all",
      "Redis 8.0.2  0/1      1/1     1/2       2/4  50 %",
    ])
  })
})
