import { existsSync, readFileSync } from "node:fs"

/** A row of a guide's table: the peer's names from the row's first cell, and their replacement. */
export interface Row {
  readonly names: readonly string[]
  readonly becomes: string
}

export interface Guide {
  readonly text: string
  /** Returns the rows of the only table below a heading. Throws if the guide lacks the heading or the table. */
  rows(heading: string): Row[]
}

/** Reads a migration guide, by its file name. */
export function readGuide(name: string): Guide {
  const text = readFileSync(new URL(`../../../docs/migrate/${name}`, import.meta.url), "utf8")
  return {
    text,
    rows(heading) {
      const section = text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`))
      if (section === undefined) throw new Error(`${name} has no heading "${heading}"`)
      const lines = section.split("\n").filter((line) => line.startsWith("| "))
      if (lines.length < 3) throw new Error(`${name} has no table below "${heading}"`)
      return lines.slice(2).map((line) => {
        const [first = "", ...rest] = cellsOf(line)
        return { names: codeIn(first), becomes: rest.join(" | ") }
      })
    },
  }
}

/** Returns the cells of a table's line. */
function cellsOf(line: string): string[] {
  const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim())
  return cells.slice(1, -1)
}

/** Returns the code spans of a cell. */
function codeIn(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code)
}

/** Returns all of the peer's names in some rows, sorted. A name in two rows is returned twice. */
export function namesIn(rows: readonly Row[]): string[] {
  return rows.flatMap(({ names }) => names).sort()
}

/** Returns the names from rows whose replacement is an option or a method. */
export function namesWithCounterpart(rows: readonly Row[]): string[] {
  return namesIn(rows.filter(({ becomes }) => !/^(No counterpart|Nothing)\b/.test(becomes)))
}

/** The other test that covers a counterpart: a file of the repository, and a word that it contains. */
export type ShownBy = Readonly<Record<string, readonly [file: string, word: string]>>

/** Returns the names whose test does not exist or does not contain the word. */
export function notShown(shownBy: ShownBy): string[] {
  return Object.entries(shownBy)
    .filter(([, [file, word]]) => {
      const url = new URL(`../../../${file}`, import.meta.url)
      return !existsSync(url) || !readFileSync(url, "utf8").includes(word)
    })
    .map(([name]) => name)
}
