import { existsSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { expect } from "vitest"
import { type Block, readBlocks } from "../blocks.ts"
import { readGuide } from "./guide.ts"

const require = createRequire(import.meta.url)

/** A string that occurs once in a peer's example, and its replacement. A pattern must contain no groups. */
export type Edit = readonly [old: string | RegExp, replacement: string]

/** The number of lines that a user must change in an example. Empty lines and braces count too. */
export interface LinesChanged {
  /** Lines of the changed example that the peer's example does not have. */
  readonly written: readonly string[]
  /** Number of lines of the peer's example that are deleted without a replacement. */
  readonly deleted: number
}

/** Returns the first block of a peer's README that contains a string. */
export function exampleOf(peer: string, text: string): Block {
  let folder = dirname(require.resolve(peer))
  while (!existsSync(join(folder, "package.json"))) folder = dirname(folder)
  const file = ["readme.md", "README.md"].map((name) => join(folder, name)).find(existsSync)
  if (file === undefined) throw new Error(`${peer} has no README`)
  return blockWith(readBlocks(`${peer}/readme.md`, readFileSync(file, "utf8")), text)
}

/** Returns the first block that contains a string. */
export function blockWith(blocks: readonly Block[], text: string): Block {
  const found = blocks.find((block) => block.text.includes(text))
  if (found === undefined) throw new Error(`no block contains ${text}`)
  return found
}

/**
 * Applies the edits to an example. Throws if a string does not occur exactly once, so that a change of the README is
 * detected.
 */
export function edited(text: string, edits: readonly Edit[]): string {
  return edits.reduce((changed, [old, replacement]) => {
    const parts = changed.split(old)
    if (parts.length !== 2) throw new Error(`${old} occurs ${parts.length - 1} times`)
    return parts.join(replacement)
  }, text)
}

/** Counts the lines that a change writes and deletes. Differences in indentation are ignored. */
export function linesChanged(before: string, after: string): LinesChanged {
  const written = linesMissing(after, before)
  return { written, deleted: Math.max(0, linesMissing(before, after).length - written.length) }
}

/**
 * Expects the guide's row in the table of all guides to state the number of lines that change in an example. `label`
 * is the text after the guide's link in this row.
 */
export function expectLinesTold(guide: string, label: string, { written, deleted }: LinesChanged): void {
  const rows = readGuide("README.md").text.match(/(?<=^\| \[.*\])\(.*\|$/gm) ?? []
  expect(rows).toContain(`(${guide}.md)${label} | ${written.length} | ${deleted} |`)
}

/** Returns the lines that occur more often in a text than in another text, without their indentation. */
function linesMissing(text: string, other: string): string[] {
  const known = new Map<string, number>()
  for (const line of trimmedLines(other)) known.set(line, (known.get(line) ?? 0) + 1)
  return trimmedLines(text).filter((line) => {
    const left = known.get(line) ?? 0
    known.set(line, left - 1)
    return left <= 0
  })
}

function trimmedLines(text: string): string[] {
  return text.split("\n").map((line) => line.trim())
}
