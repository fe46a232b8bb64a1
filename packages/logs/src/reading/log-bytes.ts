import { createReadStream } from "node:fs"
import { stat } from "node:fs/promises"
import { pipeline, Readable } from "node:stream"
import { createGunzip } from "node:zlib"
import { LogError } from "../log-error.ts"

/**
 * Size of a chunk. It is small enough that V8 allocates the chunk's text in its young generation, which is cheap to
 * collect.
 */
const CHUNK_BYTES = 64 * 1024

/** The object whose `stdin` is read for "-", such as `process`. */
export type LogInput = Readonly<Record<"stdin", AsyncIterable<Uint8Array>>>

/** A file of logs, or standard input. */
export interface LogSource {
  /** The name as given; "standard input" for "-". */
  readonly name: string
  /** Number of bytes of a file; undefined for a pipe, which can only be read once. */
  readonly size: number | undefined
  /**
   * Returns the decompressed bytes. Calls `onBytes` with the number of bytes read from the file. Rejects with
   * LogError.
   */
  read(onBytes: (count: number) => void): AsyncIterable<Buffer>
}

/** Finds a file, or standard input for "-". Rejects with LogError if the file does not exist. */
export async function findSource(given: string, io: LogInput): Promise<LogSource> {
  if (given === "-") {
    const name = "standard input"
    return { name, size: undefined, read: (onBytes) => decompressed(name, io?.stdin, onBytes) }
  }
  const stats = await stat(given).catch((error: unknown) => fail(given, error))
  if (stats.isDirectory()) throw new LogError(`${given} is a folder: give its files, such as ${given}/*.log`)
  return {
    name: given,
    size: stats.isFile() ? stats.size : undefined,
    read: (onBytes) => decompressed(given, createReadStream(given, { highWaterMark: CHUNK_BYTES }), onBytes),
  }
}

/** Resolves with the next chunk; undefined at the end. */
export async function nextChunk(chunks: AsyncIterator<Buffer>): Promise<Buffer | undefined> {
  const { value, done } = await chunks.next()
  return done === true ? undefined : value
}

/** First bytes of files that must be converted before they can be read. */
const UNREADABLE: readonly (readonly [bytes: readonly number[], advice: string])[] = [
  [[0x28, 0xb5, 0x2f, 0xfd], "is compressed with zstd: pass it through zstdcat to standard input (-)"],
  [[0xfd, 0x37, 0x7a, 0x58], "is compressed with xz: pass it through xzcat to standard input (-)"],
  [[0x42, 0x5a, 0x68], "is compressed with bzip2: pass it through bzcat to standard input (-)"],
  [[0x50, 0x4b, 0x03, 0x04], "is a zip archive: unpack it first"],
  [[0xff, 0xfe], "is UTF-16 text: convert it to UTF-8 first"],
]
const LONGEST_MAGIC = 4

async function* decompressed(
  name: string,
  stream: AsyncIterable<Uint8Array>,
  onBytes: (count: number) => void,
): AsyncGenerator<Buffer> {
  const counted = countBytes(name, stream, onBytes)
  const start = await firstBytes(counted)
  const found = UNREADABLE.find(([bytes]) => bytes.every((byte, at) => start[at] === byte))
  if (found !== undefined) {
    await counted.return(undefined)
    throw new LogError(`${name} ${found[1]}`)
  }
  const all = startingWith(start, counted)
  if (start[0] === 0x1f && start[1] === 0x8b) yield* gunzip(name, all)
  else yield* all
}

async function* countBytes(
  name: string,
  stream: AsyncIterable<Uint8Array>,
  onBytes: (count: number) => void,
): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of stream) {
      onBytes(chunk.length)
      // If the program has set an encoding on standard input, its chunks are strings.
      yield Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk)
    }
  } catch (error) {
    fail(name, error)
  }
}

/**
 * Returns at least the first bytes that are needed to recognize a file. It may have to read several chunks, because a
 * pipe may deliver single bytes.
 */
async function firstBytes(chunks: AsyncGenerator<Buffer>): Promise<Buffer> {
  let start: Buffer = Buffer.alloc(0)
  while (start.length < LONGEST_MAGIC) {
    const { value, done } = await chunks.next()
    if (done === true) break
    start = start.length === 0 ? value : Buffer.concat([start, value])
  }
  return start
}

async function* startingWith(start: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  try {
    if (start.length > 0) yield start
    yield* rest
  } finally {
    await rest.return(undefined)
  }
}

async function* gunzip(name: string, compressed: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  const unzipped = createGunzip({ chunkSize: CHUNK_BYTES })
  // Passes errors of the file on to the reader, and closes the file when the reader stops early.
  pipeline(Readable.from(compressed), unzipped, () => {})
  try {
    for await (const chunk of unzipped) yield chunk as Buffer
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === "Z_BUF_ERROR") {
      throw new LogError(`${name} is a truncated gzip file: copy it again, or leave it out`, {
        cause: error,
      })
    }
    if (code?.startsWith("Z_") === true) {
      throw new LogError(`${name} is a damaged gzip file: copy it again, or leave it out`, { cause: error })
    }
    throw error
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "does not exist: correct the path",
  ENOTDIR: "does not exist: correct the path",
  EISDIR: "is a folder: give the paths of its files",
  EACCES: "is not readable by you: change its permissions",
}

function fail(name: string, error: unknown): never {
  const { code, message } = error as NodeJS.ErrnoException
  throw new LogError(`${name} ${REASONS[String(code)] ?? `cannot be read: ${message}`}`, { cause: error })
}
