import { readFileSync } from "node:fs"
import { globSync } from "tinyglobby"
import ts from "typescript"
import { expect, it } from "vitest"

/** Adapters export the same names, so that an app that changes its framework needs to change only one import. */
const OF_ADAPTERS = ["RateLimit", "RateLimitOptions"]

it("no two types of the packages share a name", () => {
  const files = globSync("packages/*/src/**/*.ts", { ignore: ["**/*.{test,d}.ts", "**/{testing,gen}/**"] })
  const filesOf = new Map<string, string[]>()
  for (const file of files) {
    const { statements } = ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest)
    for (const each of statements) {
      const isType =
        ts.isInterfaceDeclaration(each) || ts.isTypeAliasDeclaration(each) || ts.isClassDeclaration(each)
      if (isType && each.name !== undefined) {
        filesOf.set(each.name.text, [...(filesOf.get(each.name.text) ?? []), file])
      }
    }
  }
  expect(filesOf.size).toBeGreaterThan(500)
  const shared = [...filesOf].filter(([name, where]) => where.length > 1 && !OF_ADAPTERS.includes(name))
  expect(shared).toEqual([])
})
