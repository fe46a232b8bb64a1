import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import {
  LogError,
  readLogs,
  replayLogs,
  type SuggestOptions,
  suggestedRules,
  suggestLimits,
} from "@sluice/logs"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"

const ANN = "192.0.2.1"
const BEN = "192.0.2.2"
const RULES = [{ name: "per-ip", field: "ip", limit: 2, window: "1 minute" }]

let folder: string
let log: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-logs-"))
  log = join(folder, "access.log")
  const line = (client: string, second: number) =>
    `${client} - - [03/Jun/2025:08:00:0${second} +0000] "GET / HTTP/1.1" 200 5\n`
  writeFileSync(log, line(ANN, 0) + line(ANN, 1) + line(BEN, 1) + line(ANN, 2) + line(ANN, 3))
})
afterAll(() => rmSync(folder, { recursive: true }))

describe("replayLogs", () => {
  it("counts what rules would have refused, with defaults for everything else", async () => {
    const { ok, total, clients } = await replayLogs(readLogs([log]), { rules: RULES })
    expect({ ok, total }).toEqual({
      ok: true,
      total: { seen: 5, refused: 2, clients: { seen: 2, refused: 1 } },
    })
    expect(clients).toMatchObject([{ client: ANN, rule: "per-ip", requests: 4, refused: 2, peak: 2 }])
  })

  it.each([
    [2, true],
    ["40%", true],
    [1, false],
    ["39.9%", false],
  ])("takes the bound %j as a number or a text", async (maxRefused, ok) => {
    expect((await replayLogs(readLogs([log]), { rules: RULES, maxRefused })).ok).toBe(ok)
  })

  it("compares with other rules, and finds clients that must not be refused", async () => {
    const { ok, against, bounds } = await replayLogs(readLogs([log]), {
      rules: RULES,
      against: { name: "before", rules: [{ ...RULES[0], limit: 3, window: "1 minute" }] },
      never: { name: "partners", text: `# A partner\n${ANN}\n` },
    })
    expect(against).toMatchObject({ file: "before", newlyRefused: { requests: 1, clients: 0 } })
    expect([ok, bounds]).toEqual([
      false,
      [{ bound: "--never partners", value: `refused: ${ANN}`, holds: false }],
    ])
  })

  it("rejects with LogError before it reads a log", async () => {
    const options = { rules: RULES, maxRefused: "few" }
    const reading = replayLogs(readLogs(["/nowhere.log"]), options)
    await expect(reading).rejects.toThrow(LogError)
    await expect(reading).rejects.toMatchObject({ code: "SLUICE_LOG", message: /^--max-refused few is not/ })
  })
})

describe("suggestLimits", () => {
  it("opens files twice, and reports the requests that a limit refuses", async () => {
    const open = vi.fn(() => readLogs([log]))
    const { groups } = await suggestLimits(open, { windows: ["60s", "1m", "1s"], refuseAtMost: 0.5 })
    expect(open).toHaveBeenCalledTimes(2)
    expect(groups[0]?.windows.map(({ window }) => window.text)).toEqual(["1 second", "1 minute"])
    expect(groups[0]?.windows[1]?.candidates[0]?.requests).toEqual({ value: 0, error: 0 })
  })

  it("returns rules in shadow mode, with one for the capacity", async () => {
    const rules = suggestedRules(await suggestLimits(() => readLogs([log]), { capacity: "500/s" }))
    expect(rules.map(({ shadow }) => shadow)).toEqual(rules.map(() => true))
    expect(rules.at(-1)).toMatchObject({ field: "service", limit: 500, window: "1 second" })
  })

  it.each<[SuggestOptions, string]>([
    [{ windows: ["8d"] }, "--windows: 8d is not a window"],
    [{ capacity: "500" }, "--capacity: 500 is not a capacity"],
    [{ capacity: "20000/m", algorithm: "sliding-log" }, "--capacity: "],
    [{ algorithm: "token-bucket" as "sliding-log" }, "--algorithm: peaks in a token-bucket depend"],
    [{ by: ["head er:"] }, "--by head er:"],
  ])("rejects %j with LogError before it opens a log", async (options, message) => {
    const open = vi.fn(() => readLogs([log]))
    const suggesting = suggestLimits(open, options)
    await expect(suggesting).rejects.toThrow(LogError)
    await expect(suggesting).rejects.toThrow(message)
    expect(open).not.toHaveBeenCalled()
  })
})
