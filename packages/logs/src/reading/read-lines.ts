import { problemAt, requireOptions } from "@sluice/core/kit"
import { texts } from "../option-checks.ts"
import { lineSplitter } from "./lines.ts"
import { findSource } from "./log-bytes.ts"

/** A line of a file. */
export interface FileLine {
  /** The name as given; "standard input" for "-". */
  readonly file: string
  /** The number of the line, from 1. */
  readonly line: number
  /** The line without its end. A line of more than 64 KiB is cut. */
  readonly text: string
  /** True if the line was cut. */
  readonly isCut: boolean
}

/**
 * Reads the lines of files of UTF-8 text one after the other, or the standard input of `io` for "-". Files may be compressed
 * with gzip. Each array contains the lines that end in one chunk of a file, so memory does not grow with the files. The
 * iteration rejects with LogError if a file cannot be read, and with InvalidOptionError if `paths` are not strings.
 */
export async function* readLines(
  paths: readonly string[],
  io: Readonly<Record<"stdin", AsyncIterable<Uint8Array>>> = process,
): AsyncGenerator<readonly FileLine[]> {
  requireOptions("readLines", {}, {}, problemAt("paths", paths, texts))
  for (const path of paths) {
    const source = await findSource(path, io)
    const splitter = lineSplitter("utf8")
    let line = 0
    let lines: FileLine[] = []
    const onLine = (text: string, isCut: boolean): void => {
      line++
      lines.push({ file: source.name, line, text, isCut })
    }
    for await (const chunk of source.read(() => {})) {
      splitter.push(chunk, onLine)
      yield lines
      lines = []
    }
    splitter.end(onLine)
    yield lines
  }
}
