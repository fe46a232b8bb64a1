import { readdirSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { drawPictures } from "./pictures.ts"

const DOCS = new URL("../../docs/", import.meta.url)
const pictures = await drawPictures()
const guide = readFileSync(new URL("rules/algorithms.md", DOCS), "utf8")

describe.each(pictures)("$file", ({ file, svg, words }) => {
  it("shows the decisions that a limiter makes", () => {
    expect(readFileSync(new URL(`pictures/charts/${file}`, DOCS), "utf8")).toBe(svg)
  })

  it("appears in the guide with its description", () => {
    expect(guide).toContain(`![${words}](../pictures/charts/${file})`)
  })
})

it("drawPictures() returns every picture in docs/pictures/charts", () => {
  const drawn = readdirSync(new URL("pictures/charts", DOCS)).filter((name) => name.endsWith(".svg"))
  expect(drawn.toSorted()).toEqual(pictures.map(({ file }) => file).toSorted())
})
