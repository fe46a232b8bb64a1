import { describe, expect, it } from "vitest"
import { sentencesOf } from "./sentences.ts"

const read = (path: string, text: string): string[] =>
  sentencesOf(path, text).map(({ kind, place, text: sentence }) => `${kind} ${place} ${sentence}`)

describe("pnpm sentences", () => {
  it("reads docstrings, comments and messages, each with its line", () => {
    const source = [
      "/**",
      " * Returns the wait of a request. It is",
      " * in milliseconds: Undefined means none at all.",
      " * @param ms how long",
      " */",
      "const a = 1 // at the end of a line",
      "  // A comment over",
      "  // two lines.",
      'throw new Error("The option must be a positive number.")',
      "// Too short.",
    ].join("\n")
    expect(read("a.ts", source)).toEqual([
      "code a.ts:1 Returns the wait of a request.",
      "code a.ts:1 It is in milliseconds:",
      "code a.ts:1 Undefined means none at all.",
      "code a.ts:7 A comment over two lines.",
      "code a.ts:9 The option must be a positive number.",
    ])
    expect(read("a.lua", "local a = 1\n-- The counter of the key.\n")).toEqual([
      "code a.lua:2 The counter of the key.",
    ])
  })

  it("reads the titles of tests with their groups, but not the messages in tests", () => {
    const test =
      'describe("the store", () => {\n  it("counts", () => expect(a).toBe("A message of the code here."))\n})'
    expect(read("a.test.ts", test)).toEqual(["titles a.test.ts:2 the store > counts"])
  })

  it("reads the sentences and cells of documents, without code, headings and pictures", () => {
    const page = [
      "# A title of four words",
      "",
      "The first line ends here. The second",
      "sentence ends here.",
      "",
      "- An item of a list",
      "- Another item of it",
      "",
      "| a cell of four words | two words |",
      "```ts",
      "const code = that(is, not, read)",
      "```",
      "![A picture of a counter.](a.svg)",
    ].join("\n")
    expect(read("a.md", page)).toEqual([
      "documents a.md:3 The first line ends here.",
      "documents a.md:3 The second sentence ends here.",
      "documents a.md:6 An item of a list",
      "documents a.md:7 Another item of it",
      "documents a.md:9 a cell of four words",
    ])
  })
})
