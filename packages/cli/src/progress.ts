import type { LogRecord, LogSummary, Logs } from "@sluice/logs"
import type { Io } from "./io.ts"

const EVERY_MS = 100
const WIDTH = 24

/** Returns the logs, and shows on a terminal how much of them has been read, at most ten times per second. */
export function withProgress(logs: Logs, { stderr }: Pick<Io, "stderr">): Logs {
  if (stderr.isTTY !== true) return logs
  const { summary } = logs
  async function* records(): AsyncGenerator<readonly LogRecord[]> {
    const startedMs = performance.now()
    let shownMs = Number.NEGATIVE_INFINITY
    try {
      for await (const list of logs) {
        yield list
        const nowMs = performance.now()
        if (nowMs - shownMs < EVERY_MS) continue
        shownMs = nowMs
        stderr.write(`\r\u001b[K${progressText(summary, nowMs - startedMs)}`)
      }
    } finally {
      stderr.write("\r\u001b[K")
    }
  }
  return { summary, [Symbol.asyncIterator]: () => records() }
}

/** Returns a string such as `[######------] 50%  1,200,000 lines, 24.1 MB/s, 12 s left`. */
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
