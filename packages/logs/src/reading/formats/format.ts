import type { OpenRecord } from "../record.ts"

/** The result for a line that matches the format, but is not a request. */
export const SKIPPED = "skipped"

/**
 * The result for a line: its request, `SKIPPED`, or undefined if the line does not match the format. Nothing is
 * guessed from a line that does not match.
 */
export type LineResult = OpenRecord | typeof SKIPPED | undefined

/** Reads the lines of one file, in order. It never throws, whatever a line contains. */
export interface LineReader {
  /** Returns the request in the line. `number` is its number in the file, from 1. */
  read(line: string, number: number): LineResult
}

/** Where to read more fields, by field name. */
export type FieldMap = Readonly<Record<string, string>>

/** A format of logs. */
export interface LogFormat {
  readonly name: string
  /** The encoding of the text. In Latin-1, each byte becomes one character. */
  readonly encoding: "latin1" | "utf8"
  /** Resolution of the format's times in milliseconds. If absent, the resolution follows from the times in the log. */
  readonly resolutionMs?: number | undefined
  /** Creates the reader of the file with this index. Throws LogError if the format lacks a source that `map` names. */
  open(file: number, map: FieldMap): LineReader
}
