import { existsSync, readFileSync } from "node:fs"

/** A row of a guide's table: the peer's names in its first cell, and what they become. */
export interface Row {
  readonly names: readonly string[]
  readonly becomes: string
}

export interface Guide {
  readonly text: string
  /** The rows of the one table below a heading. Throws when the guide has no such heading, or no table there. */
  rows(heading: string): Row[]
}

/** A guide for those who come from a peer, by its file's name. */
export function readGuide(name: string): Guide {
  const text = readFileSync(new URL(`../../../docs/guides/migrating/${name}`, import.meta.url), "utf8")
  return {
    text,
    rows(heading) {
      const section = text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`))
      if (section === undefined) throw new Error(`${name} has no heading "${heading}"`)
      const lines = section.split("\n").filter((line) => line.startsWith("| "))
      if (lines.length < 3) throw new Error(`${name} has no table below "${heading}"`)
      return lines.slice(2).map((line) => {
        const [, first = "", ...rest] = line.split(/(?<!\\)\|/)
        return { names: codeIn(first), becomes: rest.slice(0, -1).join("|").trim() }
      })
    },
  }
}

/** The texts that a cell has in code. */
function codeIn(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code)
}

/** All the peer's names of some rows, sorted: a name that has two rows is there twice. */
export function namesIn(rows: readonly Row[]): string[] {
  return rows.flatMap(({ names }) => names).sort()
}

/** The names of the rows that name something to set or to call instead. */
export function namesWithCounterpart(rows: readonly Row[]): string[] {
  return namesIn(rows.filter(({ becomes }) => !/^(No counterpart|Nothing)\b/.test(becomes)))
}

/** Which other test shows a counterpart: a file of the repository, and a word of it. */
export type ShownBy = Readonly<Record<string, readonly [file: string, word: string]>>

/** Those of them whose test is not there, or does not say the word. */
export function notShown(shownBy: ShownBy): string[] {
  return Object.entries(shownBy)
    .filter(([, [file, word]]) => {
      const url = new URL(`../../../${file}`, import.meta.url)
      return !existsSync(url) || !readFileSync(url, "utf8").includes(word)
    })
    .map(([name]) => name)
}
