import type { Io } from "../io.ts"
import type { LogSummary } from "../logs/log.ts"

const EVERY_MS = 100
const WIDTH = 24

/** Shows on a terminal how much of the logs has been read. Writes nothing anywhere else. */
export class ReadingProgress {
  readonly #stderr: Io["stderr"]
  readonly #summary: LogSummary
  readonly #startedMs = performance.now()
  #shownMs = Number.NEGATIVE_INFINITY

  constructor({ stderr }: Pick<Io, "stderr">, summary: LogSummary) {
    this.#stderr = stderr
    this.#summary = summary
  }

  /** Updates the line, at most ten times per second. */
  update(): void {
    if (this.#stderr.isTTY !== true) return
    const nowMs = performance.now()
    if (nowMs - this.#shownMs < EVERY_MS) return
    this.#shownMs = nowMs
    this.#stderr.write(`\r\u001b[K${progressText(this.#summary, nowMs - this.#startedMs)}`)
  }

  /** Removes the line. */
  end(): void {
    if (this.#stderr.isTTY === true) this.#stderr.write("\r\u001b[K")
  }
}

/** Returns a text such as `[######------] 50%  1,200,000 lines, 24.1 MB/s, 12 s left`. */
export function progressText(
  { bytes, allBytes, lines }: Pick<LogSummary, "bytes" | "allBytes" | "lines">,
  elapsedMs: number,
): string {
  const rate = bytes / Math.max(1, elapsedMs)
  const read = `${lines.toLocaleString("en-US")} lines, ${(rate / 1_000).toFixed(1)} MB/s`
  if (allBytes === undefined || allBytes === 0) return read
  const share = Math.min(1, bytes / allBytes)
  const filled = Math.round(WIDTH * share)
  const leftS = rate === 0 ? "?" : Math.ceil(Math.max(0, allBytes - bytes) / rate / 1_000)
  return `[${"#".repeat(filled)}${"-".repeat(WIDTH - filled)}] ${Math.floor(100 * share)}%  ${read}, ${leftS} s left`
}
