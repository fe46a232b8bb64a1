import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import type { Turn } from "./saturated-process.ts"

const PROCESS = fileURLToPath(new URL("./saturated-process.ts", import.meta.url))

it("an elastic rule exceeds its limit while the process is calm, and stops within a second of saturation", {
  // The process waits for a calm second three times, which is rare on a busy machine.
  timeout: 600_000,
}, async () => {
  // The open limiter must not keep the process alive. Otherwise, this test would wait forever.
  const { stdout } = await promisify(execFile)(process.execPath, ["--import", "tsx", PROCESS])
  const turns = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Turn)
  expect(turns.map(({ phase, becomes }) => `${phase}: ${becomes}`)).toEqual([
    "start: hard",
    "start: elastic",
    "busy: hard",
    "rest: elastic",
    "blocked: hard",
    "rest again: elastic",
  ])
  const [, start, busy, rest, , restAgain] = turns as [Turn, Turn, Turn, Turn, Turn, Turn]
  // The time is measured by the process's own clock from the start of saturation. The first hard decision is not
  // used, because a slow machine may not have made a request before it.
  expect(busy.elasticUntilMs).toBeLessThan(1_000)
  // The capacity returns only after a calm second.
  for (const { afterMs } of [start, rest, restAgain]) expect(afterMs).toBeGreaterThan(700)
})
