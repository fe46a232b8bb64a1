/** What a piece of text is, for its colour. */
type Tone = "strong" | "quiet" | "good" | "bad" | "changed"

/** A part of a line, coloured or not. */
export type Piece = string | { readonly tone: Tone; readonly text: string }

/** A line for people. Its texts may have come from anywhere: `formatLine` makes them safe for a terminal. */
export type OutputLine = Piece | readonly Piece[]

const SGR: Readonly<Record<Tone, number>> = { strong: 1, quiet: 2, good: 32, bad: 31, changed: 33 }

/** The piece in a colour, in terminals that have some. */
export function tinted(tone: Tone, text: string): Piece {
  return { tone, text }
}

/** An error as lines: all of its message, the first line of it in colour. */
export function errorLines(message: string): OutputLine[] {
  const [first = "", ...rest] = message.split("\n")
  return [tinted("bad", `error: ${first}`), ...rest]
}

/** The line as it is written. */
export function formatLine(line: OutputLine, hasColour: boolean): string {
  const pieces = Array.isArray(line) ? (line as readonly Piece[]) : [line as Piece]
  return pieces
    .map((piece) => {
      if (typeof piece === "string") return printable(piece)
      const text = printable(piece.text)
      return hasColour ? `\u001b[${SGR[piece.tone]}m${text}\u001b[0m` : text
    })
    .join("")
}

/** Characters that are not seen, or that a terminal obeys: they could forge a line or hide a part of it. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/gu

/** The text with invisible characters as `\u{1b}`. */
function printable(text: string): string {
  return text.replace(INVISIBLE, (char) => `\\u{${(char.codePointAt(0) as number).toString(16)}}`)
}

/** A value as JSON on one line, invisible characters escaped: still the same value to a parser. */
export function formatJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, undefined, indent)
  return text.replace(INVISIBLE, (char) => (char === "\n" ? char : [...units(char)].map(escaped).join("")))
}

/** Rows as columns of equal width. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => (row[at] ?? "").length)))
  return rows.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join("  ")
      .trimEnd(),
  )
}

function units(char: string): string[] {
  return char.split("")
}

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`
}
