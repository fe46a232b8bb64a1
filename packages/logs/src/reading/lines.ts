/** Maximum length of a line in bytes. A longer line is not kept in memory. */
export const MAX_LINE_BYTES: number = 64 * 1024
/** Number of bytes of a long line that are stored for messages. */
const KEPT_BYTES = 256

const NEWLINE = 10

/** Receives the lines of a file. If a line is too long, `text` contains only its beginning. */
export type OnLine = (text: string, isTooLong: boolean) => void

/** Splits bytes into lines. */
export interface LineSplitter {
  /** Calls `onLine` for all lines that end in the chunk. */
  push(chunk: Buffer, onLine: OnLine): void
  /** Calls `onLine` for the last line, if it does not end with a newline. */
  end(onLine: OnLine): void
}

/**
 * Returns a splitter for one file. Removes carriage returns before newlines, a byte order mark, and NUL bytes at the
 * start of a line. A log file contains NUL bytes after it was truncated while a program was writing to it.
 */
export function lineSplitter(encoding: "latin1" | "utf8"): LineSplitter {
  /** Pieces of the line that has not ended yet. */
  let pieces: Buffer[] = []
  let size = 0
  let isTooLong = false
  let isFirst = true

  function keep(piece: Buffer): void {
    if (isTooLong || piece.length === 0) return
    size += piece.length
    // Copy the piece, because a part of a chunk would keep the whole chunk in memory.
    pieces.push(Buffer.from(piece))
    if (size <= MAX_LINE_BYTES + 1) return
    isTooLong = true
    pieces = [Buffer.from(Buffer.concat(pieces).subarray(0, KEPT_BYTES))]
  }

  function endLine(onLine: OnLine): void {
    const text = decode(pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces), encoding)
    const wasTooLong = isTooLong
    pieces = []
    size = 0
    isTooLong = false
    pass(text, wasTooLong, onLine)
  }

  function pass(text: string, wasTooLong: boolean, onLine: OnLine): void {
    let line = text
    if (isFirst) {
      isFirst = false
      // The byte order mark as Latin-1 and as UTF-8.
      line = line.replace(/^(?:\u00ef\u00bb\u00bf|\ufeff)/, "")
    }
    if (line.charCodeAt(line.length - 1) === 13) line = line.slice(0, -1)
    const isCut = wasTooLong || isLong(line, encoding)
    if (line.charCodeAt(0) === 0) line = line.slice(textStart(line))
    onLine(isCut ? line.slice(0, KEPT_BYTES) : line, isCut)
  }

  return {
    push(chunk, onLine) {
      let from = 0
      if (size > 0) {
        const end = chunk.indexOf(NEWLINE)
        if (end === -1) return keep(chunk)
        keep(chunk.subarray(0, end))
        endLine(onLine)
        from = end + 1
      }
      const last = chunk.lastIndexOf(NEWLINE)
      if (last >= from) {
        const text = decode(chunk.subarray(from, last + 1), encoding)
        let start = 0
        for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", start)) {
          pass(text.slice(start, end), false, onLine)
          start = end + 1
        }
      }
      keep(chunk.subarray(Math.max(from, last + 1)))
    },
    end(onLine) {
      if (size > 0) endLine(onLine)
    },
  }
}

function decode(bytes: Buffer, encoding: "latin1" | "utf8"): string {
  return bytes.toString(encoding)
}

function textStart(line: string): number {
  let at = 0
  while (line.charCodeAt(at) === 0) at++
  return at
}

function isLong(line: string, encoding: "latin1" | "utf8"): boolean {
  if (line.length > MAX_LINE_BYTES) return true
  // In UTF-8, each UTF-16 unit of the string takes at most 3 bytes.
  return encoding === "utf8" && line.length * 3 > MAX_LINE_BYTES && Buffer.byteLength(line) > MAX_LINE_BYTES
}
