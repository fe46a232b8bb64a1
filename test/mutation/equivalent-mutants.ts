import type { Mutant } from "@stryker-mutator/api/core"
import { EQUIVALENT } from "./equivalent.ts"

/** A line of a source with mutants that behave like the source. */
export interface EquivalentLine {
  /** Path from the root of the repository. */
  readonly path: string
  /** The text of the line, without surrounding space. Applies to each line of the file with this text. */
  readonly line: string
  /** The names of mutators, or "all" for every mutator. */
  readonly mutators: readonly string[]
}

/** The lines that `equivalent.ts` lists. */
export const EQUIVALENT_LINES: readonly EquivalentLine[] = Object.entries(EQUIVALENT).flatMap(
  ([path, lines]) =>
    Object.entries(lines).map(([line, text]) => ({
      path: `packages/${path}`,
      line,
      mutators: text.slice(0, text.indexOf(":")).split(","),
    })),
)

/**
 * Returns the listed lines that no source contains, each with its file and text. `read` returns undefined for a missing
 * file.
 */
export function staleLines(
  listed: readonly EquivalentLine[],
  read: (path: string) => string | undefined,
): readonly string[] {
  return listed.flatMap(({ path, line }) => {
    const text = read(path)
    if (text === undefined) return [`${path}: the file does not exist`]
    return linesOf(text).includes(line) ? [] : [`${path}: no line is ${line}`]
  })
}

/**
 * True if `mutant` changes a listed line with a listed mutator. `path` and `text` are the path and the content of its
 * file.
 */
export function isEquivalent(mutant: Mutant, path: string, text: string): boolean {
  const line = linesOf(text)[mutant.location.start.line]
  return EQUIVALENT_LINES.some(
    (listed) =>
      listed.path === path &&
      listed.line === line &&
      (listed.mutators.includes("all") || listed.mutators.includes(mutant.mutatorName)),
  )
}

function linesOf(text: string): readonly string[] {
  return text.split("\n").map((line) => line.trim())
}
