import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { ROOT } from "./documents.ts"

const [, ...sections] = readFileSync(`${ROOT}docs/start/questions.md`, "utf8").split(/^## /m)
const questions = sections.map((section) => {
  const [question = "", ...lines] = section.split("\n")
  return { question, text: lines.join("\n") }
})

describe.each(questions)("the question $question", ({ text }) => {
  it("has an answer of at most 35 words with one link", () => {
    expect(text.split(/\s+/).filter(Boolean).length).toBeLessThanOrEqual(35)
    expect(text.match(/\]\(/g)).toHaveLength(1)
  })
})
