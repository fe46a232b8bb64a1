import type { Io, Output } from "./io.ts"

/** The meaning of a piece of text, which determines its color. */
type Tone = "strong" | "quiet" | "good" | "bad" | "changed"

/** A part of a line, with or without a color. */
export type Piece = string | { readonly tone: Tone; readonly text: string }

/** A line for people. Its strings may be untrusted, because `formatLine` makes them safe for a terminal. */
export type OutputLine = Piece | readonly Piece[]

const SGR: Readonly<Record<Tone, number>> = { strong: 1, quiet: 2, good: 32, bad: 31, changed: 33 }

/** Returns a piece that is colored in terminals with colors. */
export function tinted(tone: Tone, text: string): Piece {
  return { tone, text }
}

/** Returns the lines of an error: its whole message, with the first line in color. */
export function errorLines(message: string): OutputLine[] {
  const [first = "", ...rest] = message.split("\n")
  return [tinted("bad", `error: ${first}`), ...rest]
}

/** Returns the line as a string to print. */
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

/**
 * Matches invisible characters and terminal controls, which could forge a line or hide a part of it. Does not match the
 * characters that choose between an emoji and a plain symbol.
 */
const INVISIBLE = /(?![\ufe00-\ufe0f])[\p{C}\p{Zl}\p{Zp}\p{DI}]/gu

/** Whether lines are colored on this stream. */
export function hasColour({ isTTY }: Output, env: Io["env"]): boolean {
  return isTTY === true && (env.NO_COLOR ?? "") === ""
}

/** Matches characters of East Asian scripts and emoji, which take two columns of a terminal. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{3fffd}]/gu

/** Returns how many columns of a terminal a printable text takes. */
export function widthOf(text: string): number {
  const bare = text.replace(/\p{Mn}/gu, "")
  return [...bare].length + (bare.match(WIDE)?.length ?? 0)
}

/** Returns the text with invisible characters escaped, such as `\u{1b}`. */
export function printable(text: string): string {
  return text.replace(INVISIBLE, (char) => `\\u{${(char.codePointAt(0) as number).toString(16)}}`)
}

/** Returns a value as JSON with invisible characters escaped. A JSON parser still returns the same value. */
export function formatJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, undefined, indent)
  return text.replace(INVISIBLE, (char) => (char === "\n" ? char : [...units(char)].map(escaped).join("")))
}

/** Formats rows as columns of equal width. The last columns, `numbers` of them, are aligned to the right. */
export function columns(rows: readonly (readonly string[])[], numbers = 0): string[] {
  const widths = (rows[0] ?? []).map((_, at) =>
    // There may be more rows than a function takes arguments.
    rows.reduce((widest, row) => Math.max(widest, (row[at] ?? "").length), 0),
  )
  const first = widths.length - numbers
  return rows.map((row) =>
    row
      .map((cell, at) => (at < first ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
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
