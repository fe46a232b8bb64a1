import { existsSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { expect } from "vitest"
import { type Block, readBlocks } from "../blocks.ts"
import { readGuide } from "./guide.ts"

const require = createRequire(import.meta.url)

/** A string of a peer's example, which occurs once, and what the user writes instead. A pattern has no groups. */
export type Edit = readonly [old: string | RegExp, replacement: string]

/** What a change of an example costs its user, in lines. Empty lines and braces count too. */
export interface LinesChanged {
  /** Lines of the changed example that the peer's example does not have. */
  readonly written: readonly string[]
  /** Lines of the peer's example that are gone, besides one for each line that replaces it. */
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

/** Applies the edits to an example. Throws if a string does not occur exactly once, so that a new README is noticed. */
export function edited(text: string, edits: readonly Edit[]): string {
  return edits.reduce((changed, [old, replacement]) => {
    const parts = changed.split(old)
    if (parts.length !== 2) throw new Error(`${old} occurs ${parts.length - 1} times`)
    return parts.join(replacement)
  }, text)
}

/** Counts the lines that a change takes. Indentation does not count. */
export function linesChanged(before: string, after: string): LinesChanged {
  const written = linesMissing(after, before)
  return { written, deleted: Math.max(0, linesMissing(before, after).length - written.length) }
}

/**
 * Expects that a guide's row in the table of all guides names the lines that the change of an example takes. `label` is
 * what the row says after the guide's link.
 */
export function expectLinesTold(guide: string, label: string, { written, deleted }: LinesChanged): void {
  const rows = readGuide("README.md").text.match(/(?<=^\| \[.*\])\(.*\|$/gm) ?? []
  expect(rows).toContain(`(${guide}.md)${label} | ${written.length} | ${deleted} |`)
}

/** Returns the lines of a text that another text does not have as often, without their indentation. */
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
