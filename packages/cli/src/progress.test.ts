import type { Logs } from "@sluice/logs"
import { describe, expect, it, vi } from "vitest"
import { progressText, withProgress } from "./progress.ts"

describe("progressText", () => {
  it("shows the share, the lines, the rate and the time left", () => {
    const text = progressText({ bytes: 500_000_000, allBytes: 1_000_000_000, lines: 2_800_000 }, 10_000)
    expect(text).toBe(`[${"#".repeat(12)}${"-".repeat(12)}] 50%  2,800,000 lines, 50.0 MB/s, 10 s left`)
  })

  it("omits the share for standard input", () => {
    expect(progressText({ bytes: 2_000_000, allBytes: undefined, lines: 11 }, 1_000)).toBe(
      "11 lines, 2.0 MB/s",
    )
  })
  it("shows the time left as unknown at the beginning", () => {
    expect(progressText({ bytes: 0, allBytes: 100, lines: 0 }, 5)).toContain("? s left")
  })
})

describe("withProgress", () => {
  const summary = { bytes: 0, allBytes: 100, lines: 0 }
  const logs = {
    summary,
    async *[Symbol.asyncIterator]() {
      yield []
      yield []
    },
  } as unknown as Logs

  it("shows the progress line at most ten times a second, and removes it at the end", async () => {
    // Stop the clock, so that both batches arrive within 100 ms.
    vi.spyOn(performance, "now").mockReturnValue(0)
    const written: string[] = []
    for await (const _ of withProgress(logs, {
      stderr: { isTTY: true, write: (text) => written.push(text) },
    }));
    vi.restoreAllMocks()
    expect(written).toEqual([expect.stringContaining("0%"), "\r\u001b[K"])
  })

  it("returns the logs unchanged if standard error is not a terminal", () => {
    expect(withProgress(logs, { stderr: { write: () => {} } })).toBe(logs)
  })
})
