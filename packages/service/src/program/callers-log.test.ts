import { expect, it } from "vitest"
import { createCallersLog } from "./callers-log.ts"

it("the log about callers writes one line per minute for each kind, with the number of events", () => {
  let nowMs = 0
  const lines: unknown[] = []
  const log = createCallersLog({ warn: (...line: unknown[]) => void lines.push(line) }, () => nowMs)
  for (const [at, kind, peer] of [
    [0, "http", "10.0.0.1"],
    [59_999, "http", "10.0.0.2"],
    [59_999, "expired", undefined],
    [60_000, "http", "10.0.0.3"],
    [119_998, "expired", undefined],
  ] as const) {
    nowMs = at
    log(kind, { peer }, `failed: ${kind}`)
  }
  expect(lines).toEqual([
    [{ peer: "10.0.0.1", count: 1 }, "failed: http"],
    [{ peer: undefined, count: 1 }, "failed: expired"],
    [{ peer: "10.0.0.3", count: 2 }, "failed: http"],
  ])
})

it("the log about callers writes each kind once, and ignores new kinds after the first thousand", () => {
  let lines = 0
  const log = createCallersLog({ warn: () => void lines++ }, () => 0)
  for (let kind = 0; kind < 2_000; kind++) log(String(kind), {}, "")
  log("0", {}, "")
  expect(lines).toBe(1_000)
})
