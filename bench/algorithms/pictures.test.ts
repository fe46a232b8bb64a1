import { readdirSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { drawPictures } from "./pictures.ts"

const DOCS = new URL("../../docs/", import.meta.url)
const pictures = await drawPictures()
const guide = readFileSync(new URL("rules/algorithms.md", DOCS), "utf8")

describe.each(pictures)("$file", ({ file, svg, words }) => {
  it("matches the current decisions of a limiter", () => {
    expect(readFileSync(new URL(`pictures/charts/${file}`, DOCS), "utf8")).toBe(svg)
  })

  it("is in the guide, with a matching description", () => {
    expect(guide).toContain(`![${words}](../pictures/charts/${file})`)
  })
})

it("the list contains every drawing", () => {
  const drawn = readdirSync(new URL("pictures/charts", DOCS)).filter((name) => name.endsWith(".svg"))
  expect(drawn.toSorted()).toEqual(pictures.map(({ file }) => file).toSorted())
})
