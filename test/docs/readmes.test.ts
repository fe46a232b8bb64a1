import { existsSync, readdirSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { ROOT } from "./documents.ts"

/** The most words of a package's README. */
const MOST_WORDS: Readonly<Record<string, number>> = { "express-rate-limit-store": 250 }

/** Links in READMEs begin with this placeholder, which `release/missing.ts` rejects. */
const LINK = /https:\/\/sluice\.example\/([\w/-]+)/g

describe.each(readdirSync(`${ROOT}packages`))("the README of @sluice/%s", (name) => {
  const readme = readFileSync(`${ROOT}packages/${name}/README.md`, "utf8")

  it("has at most 150 words, or 250 for express-rate-limit-store", () => {
    expect(readme.split(/\s+/).filter(Boolean).length).toBeLessThanOrEqual(MOST_WORDS[name] ?? 150)
  })

  it("links only to existing pages of the site", () => {
    const paths = [...readme.matchAll(LINK)].map(([, path]) => path)
    expect(paths.length).toBeGreaterThan(0)
    expect(paths.filter((path) => !existsSync(`${ROOT}docs/${path}.md`))).toEqual([])
  })
})

describe("the README of the repository", () => {
  const readme = readFileSync(`${ROOT}README.md`, "utf8")

  it("has at most 110 lines, 25 links and one picture", () => {
    expect(readme.split("\n").length - 1).toBeLessThanOrEqual(110)
    expect(readme.match(/!\[[^\]]*\]\(/g)).toHaveLength(1)
    expect(readme.match(/(?<!!)\[[^\]]*\]\(/g)?.length).toBeLessThanOrEqual(25)
  })
})
