import { readdirSync, readFileSync } from "node:fs"
import { dynamoDBRules } from "@sluice/dynamodb"
import { describe, expect, it } from "vitest"
import { drawDiagrams, RULES_POLL_MS } from "../../../docs/pictures/diagrams.ts"
import { findDocuments, ROOT } from "../documents.ts"

const diagrams = drawDiagrams()
const documents = findDocuments().map((path) => ({ path, text: readFileSync(ROOT + path, "utf8") }))

describe.each(diagrams)("the picture $file", ({ file, description, svg }) => {
  it("is what `pnpm pictures` draws", () => {
    expect(readFileSync(`${ROOT}docs/pictures/${file}`, "utf8")).toBe(svg)
  })

  it("is in a document, with its <desc> as alt text", () => {
    const [, desc] = /<desc [^>]*>(.*)<\/desc>/.exec(svg) ?? []
    expect(desc).toBe(description)
    const images = documents.flatMap(({ path, text }) =>
      [...text.matchAll(/!\[([^\]]*)\]\(([^)]*)\)/g)].map(([, alt, target = ""]) => ({
        alt,
        target: new URL(target, `file:///${path}`).pathname,
      })),
    )
    const own = images.filter(({ target }) => target === `/docs/pictures/${file}`)
    expect(own.length).toBeGreaterThan(0)
    for (const { alt } of own) expect(alt).toBe(description)
  })

  it("has a title, both color schemes, and nothing from outside", () => {
    expect(svg).toMatch(/<title id="title">[^<]+<\/title>/)
    expect(svg).toContain("@media (prefers-color-scheme:dark)")
    expect(svg.replace('xmlns="http://www.w3.org/2000/svg"', "")).not.toMatch(
      /https?:|url\(|href|@import|<script/,
    )
  })
})

it("docs/pictures contains no picture that is not drawn again", () => {
  const files = readdirSync(`${ROOT}docs/pictures`).filter((name) => name.endsWith(".svg"))
  expect(files.toSorted()).toEqual(diagrams.map(({ file }) => file).toSorted())
})

it("the picture of the system shows how often the rules are loaded by default", () => {
  const client = { send: () => Promise.reject(new Error("never sent")) }
  expect(dynamoDBRules({ client, tableName: "rules" }).pollMs).toBe(RULES_POLL_MS)
})
