import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import type { Turn } from "./saturated-process.ts"

const PROCESS = fileURLToPath(new URL("./saturated-process.ts", import.meta.url))

it("a process is elastic when it was calm, hard within a second of saturation, and elastic again afterwards", {
  // It waits for a calm second three times, and on a busy machine a second is seldom calm.
  timeout: 600_000,
}, async () => {
  // It ends by itself, or the test would wait for ever: the limiter that it leaves open holds no process.
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
  // By the process' own clock, from the moment that it is saturated. Not when it was first hard: a machine that is slow
  // may have asked nothing in all that time.
  expect(busy.elasticUntilMs).toBeLessThan(1_000)
  // Not before a second was calm.
  for (const { afterMs } of [start, rest, restAgain]) expect(afterMs).toBeGreaterThan(700)
})
