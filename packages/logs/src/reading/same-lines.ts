import { LogError } from "../log-error.ts"
import { type LogSource, nextChunk } from "./log-bytes.ts"
import type { StartedFile } from "./start-file.ts"

/**
 * Rejects two files with the same lines, such as a rotated log and its compressed copy, or a link, even if one of
 * them has grown since. To compare files, reads only files with the same first line. A pipe cannot be read twice, so
 * it is not compared.
 */
export async function rejectSameLines(files: readonly StartedFile[]): Promise<void> {
  const byStart = new Map<string | undefined, LogSource[]>()
  for (const { source, firstLine, opened } of files) {
    if (opened !== undefined) continue
    const others = byStart.get(firstLine) ?? []
    for (const other of others) if (await haveSameLines(other, source)) throw counted(other, source)
    byStart.set(firstLine, [...others, source])
  }
}

function counted(one: LogSource, other: LogSource): LogError {
  return new LogError(
    `${one.name} and ${other.name} have the same lines: leave out one of them, or its requests count twice`,
  )
}

/** True if the files are equal up to the end of the shorter file. */
async function haveSameLines(one: LogSource, other: LogSource): Promise<boolean> {
  const [first, second] = [one, other].map((source) => source.read(() => {})[Symbol.asyncIterator]()) as [
    AsyncIterator<Buffer>,
    AsyncIterator<Buffer>,
  ]
  let ofFirst: Buffer | undefined
  let ofSecond: Buffer | undefined
  try {
    for (;;) {
      if (ofFirst === undefined || ofFirst.length === 0) ofFirst = await nextChunk(first)
      if (ofSecond === undefined || ofSecond.length === 0) ofSecond = await nextChunk(second)
      if (ofFirst === undefined || ofSecond === undefined) return true
      const length = Math.min(ofFirst.length, ofSecond.length)
      if (!ofFirst.subarray(0, length).equals(ofSecond.subarray(0, length))) return false
      ofFirst = ofFirst.subarray(length)
      ofSecond = ofSecond.subarray(length)
    }
  } finally {
    await first.return?.(undefined)
    await second.return?.(undefined)
  }
}
