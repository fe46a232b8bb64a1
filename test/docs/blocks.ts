/** A fenced block of a document, with the instructions of the comment before it. */
export interface Block {
  /** The path from the root of the repository: "docs/rules/rules.md". */
  readonly document: string
  /** The line number of the block's first line of text, starting at 1. */
  readonly line: number
  /** The language after the opening fence, or empty if the fence names no language. */
  readonly language: string
  readonly text: string
  /** `<!-- run: express, /search 200*3 429 -->`: names the prelude, and the requests to send afterwards. */
  readonly run?: string
  /** `<!-- tested by: test/otel/guide.test.ts -->`: names the test that covers the block instead. */
  readonly testedBy?: string
}

/** Returns the place of the block in the form that editors understand: "README.md:15". */
export function placeOf({ document, line }: Block, atLine = 1): string {
  return `${document}:${line + atLine - 1}`
}

const FENCE = /^( *)(`{3,}|~{3,})\s*(.*)$/
const COMMENT = /^<!--\s*(run|tested by):\s*(.*?)\s*-->$/

/**
 * Returns the fenced blocks of a document, in order.
 * @throws Error when a fence is not closed, or when no block follows a comment that says how to run one
 */
export function readBlocks(document: string, markdown: string): Block[] {
  const lines = markdown.split("\n")
  const blocks: Block[] = []
  let told: { run?: string; testedBy?: string } = {}
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? ""
    const [, how, what = ""] = COMMENT.exec(line.trim()) ?? []
    const [, indent = "", fence = "", language = ""] = FENCE.exec(line) ?? []
    if (how !== undefined) {
      told = { ...told, [how === "run" ? "run" : "testedBy"]: what }
    } else if (fence !== "") {
      const end = lines.findIndex(
        (each, i) =>
          i > at && each.trim().startsWith(fence) && each.trim() === each.trim().replace(/[^`~]/g, ""),
      )
      if (end === -1) throw new Error(`${document}:${at + 1}: the block is not closed`)
      const text = lines.slice(at + 1, end).map((each) => each.slice(indent.length))
      blocks.push({
        document,
        line: at + 2,
        language: language.trim(),
        text: `${text.join("\n")}\n`,
        ...told,
      })
      told = {}
      at = end
    } else if (line.trim() !== "" && Object.keys(told).length > 0) {
      throw new Error(`${document}:${at + 1}: the comment before this line belongs to no block`)
    }
  }
  if (Object.keys(told).length > 0) throw new Error(`${document}: its last comment belongs to no block`)
  return blocks
}
