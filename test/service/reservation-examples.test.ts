import { execFile } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, it } from "vitest"
import { blocksTestedBy } from "../docs/shown.ts"
import { until } from "../servers/until.ts"
import { post } from "./post.ts"
import { type Started, startService } from "./started.ts"

// Runs the loop of docs/service/calls.md that needs nothing but Python.

const [python = ""] = blocksTestedBy(
  "test/service/reservation-examples.test.ts",
  "docs/service/calls.md",
  1,
).map(({ text }) => text)

const RULES = `
service_id: chat
rules:
  - { name: tpm, field: user, limit: 1000, window: 1 day, counts: tokens }
  - { name: five, field: user, concurrent: 5, hold: 2 seconds }
`
const run = promisify(execFile)
let started: Started
let folder: string
let renewals = 0
const ends: string[] = []

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "sluice-reservations-"))
  started = await startService(RULES, {
    shared: { storeTimeoutMs: 20_000 },
    onSettlement: (end) => ends.push(end),
    onAnswered: (_door, path) => {
      if (path.endsWith("Renew")) renewals++
    },
  })
})
afterAll(async () => {
  await started.stop()
  expect(started.faults).toEqual([])
  rmSync(folder, { recursive: true, force: true })
})

const left = async (rule: string) => {
  const named = { service: "chat", rule, client: ["ada"] }
  return (await post(started, "/sluice.v1.RateLimiter/ShowClient", named)).body.remaining
}

it("the loop in Python holds its permit for longer than hold, and settles", async () => {
  const text = `${forwardInPython()}${python}`
  writeFileSync(join(folder, "loop.py"), text.replaceAll("http://127.0.0.1:8080", started.http))
  const ended = run("python3", ["loop.py"], { cwd: folder, timeout: 60_000 })
  await until("the permit is taken", async () => (await left("five")) === "4")
  const since = performance.now()
  await until("the permit is back", async () => (await left("five")) === "5")
  expect(performance.now() - since).toBeGreaterThan(4_000)
  await ended
  expect(renewals).toBeGreaterThanOrEqual(2)
  expect(ends).toEqual(["settled"])
  expect(await left("tpm")).toBe("988")
})

/** The function with which a program forwards a request. It returns the tokens that the request has used. */
function forwardInPython(): string {
  return "import time\n\n\ndef forward():\n    time.sleep(5)\n    return 12\n\n\n"
}
