import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { facts, readInput } from "../../packages/cli/src/logs/testing/read-all.ts"
import { progressText, ReadingProgress } from "../../packages/cli/src/replay/progress.ts"
import { trafficLog } from "../fixtures/logs/generate.ts"
import { sluice } from "./in-process.ts"

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-odd-"))
})
afterAll(() => rmSync(folder, { recursive: true }))

function file(name: string, content: string): string {
  writeFileSync(join(folder, name), content)
  return join(folder, name)
}

const START = "2025-06-03T08:00:00"
const map = { time: "t", user_id: "u" }

describe("values in JSON lines", () => {
  it("may be numbers, booleans and lists of one, and lines without them are not requests", async () => {
    const line = (u: unknown) => `${JSON.stringify({ t: `${START}Z`, u })}\n`
    const log = line("ann") + line(7) + line(true) + line(["ben"]) + line(["a", "b"]) + line(undefined)
    const { records, summary } = await readInput(log, { map })
    expect(records.map(facts).map(({ named }) => (named as { user_id: string }).user_id)).toEqual(
      expect.arrayContaining(["ann", "7", "true", "ben"]),
    )
    expect(summary.skipped).toBeGreaterThan(0)
  })

  it("have invalid times if seconds or offsets are odd", async () => {
    const line = (time: string) => `${JSON.stringify({ t: time, u: "ann" })}\n`
    const log = line(`${START}Z`) + line(`${START}-02:00`) + line("2025-06-03T08:00:61Z") + line(`${START}`)
    const { summary } = await readInput(log, { map })
    expect(summary).toMatchObject({ requests: 2, unparsed: 2 })
  })

  it("of pino may have an empty policy", async () => {
    const ratelimit = { policy: "", allowed: true, remaining: null, limit: null }
    const req = { method: "GET", url: "/", remoteAddress: "192.0.2.1" }
    const line = {
      level: 30,
      time: 1_748_937_600_000,
      req,
      res: { statusCode: 200 },
      responseTime: 1,
      ratelimit,
    }
    const { records } = await readInput(`${JSON.stringify({ ...line, msg: "request completed" })}\n`)
    expect(records[0]?.live).toEqual({ allowed: true, policy: "" })
  })
})

describe("values in format lines", () => {
  it.each([
    [
      "$remote_addr [$time_local] $request_uri",
      "192.0.2.1 [03/Jun/2025:08:00:00 +0000] /a",
      "192.0.2.1 [3/Jun/2025] /a",
    ],
    ["%h %{sec}t %U", "192.0.2.1 1748937600 /a", "192.0.2.1 soon /a"],
    ["%h %t %U", "192.0.2.1 [03/Jun/2025:08:00:00 +0000] /a", "192.0.2.1 [today] /a"],
  ])("of %s are unparsed if the time is invalid", async (format, good, bad) => {
    const { summary } = await readInput(`${good}\n${bad}\n`, { format })
    expect(summary).toMatchObject({ requests: 1, unparsed: 1 })
  })

  it("of combined lines may have no status", async () => {
    const line = (status: string) =>
      `192.0.2.1 - - [03/Jun/2025:08:00:00 +0000] "GET / HTTP/1.1" ${status} 5 "-" "-"\n`
    const { records } = await readInput(line("200") + line("-") + line("000"))
    expect(records[0]?.status).toBe(200)
    for (const { status } of records.slice(1)) expect(status).toBeUndefined()
  })
})

describe("odd replays", () => {
  const line = (client: string, second: number) =>
    `${client} - - [03/Jun/2025:08:00:${String(second).padStart(2, "0")} +0000] "GET / HTTP/1.1" 200 5\n`

  it("show windows in milliseconds, and clients very far over the limit", async () => {
    const rules = file("r.yaml", "rules:\n  - { name: a, field: ip, limit: 1, window: 60000 }\n")
    const log = file("a.log", Array.from({ length: 150 }, () => line("192.0.2.1", 0)).join(""))
    const { out } = await sluice(["rules", "replay", rules, log, "--json"])
    const [rule] = JSON.parse(out).rules
    expect(rule.window).toBe("60000 ms")
    expect(rule.peaks.counts.at(-1)).toBe(1)
    expect(rule.ratios.at(-1)).toEqual({ upTo: null, clients: 1 })
  })

  it("compare rules that refuse clients that came late", async () => {
    const strict = file("s.yaml", "rules:\n  - { name: a, field: ip, limit: 1, window: 1 minute }\n")
    const none = file("n.yaml", "rules: []\n")
    const log = file("b.log", line("192.0.2.1", 0) + line("192.0.2.2", 1) + line("192.0.2.2", 2))
    const against = async (one: string, other: string) =>
      JSON.parse((await sluice(["rules", "replay", one, log, "--against", other, "--json"])).out).against
    expect(await against(strict, none)).toMatchObject({ newlyRefused: { requests: 1, clients: 1 } })
    expect(await against(none, strict)).toMatchObject({ noLongerRefused: { requests: 1, clients: 1 } })
  })

  it("show the same difference from the log for several lines", async () => {
    const rules = file("r.yaml", "rules:\n  - { name: a, field: ip, limit: 9, window: 1 minute }\n")
    const entry = (at: number) =>
      `${JSON.stringify({ t: 1_748_937_600_000 + at, ip: "192.0.2.1", ratelimit: { policy: "a", allowed: false } })}\n`
    const log = file("l.log", entry(0) + entry(1))
    const argv = ["rules", "replay", rules, log, "--map", "time=t", "--map", "ip=ip", "--json"]
    expect(JSON.parse((await sluice(argv)).out).live).toMatchObject({ compared: 2, different: 2 })
  })
})

describe("odd suggestions", () => {
  it("count the refused requests of a sample of the clients", async () => {
    const log = file("big.log", [...trafficLog({ lines: 20_000, clients: 6_000 })].join(""))
    const argv = ["rules", "suggest", log, "--windows", "1m,1h", "--max-clients", "1000", "--json"]
    const { sampledOneOf, groups } = JSON.parse((await sluice(argv)).out)
    expect(sampledOneOf).toBeGreaterThan(1)
    expect(groups[0].windows[0].candidates[0].requests.error).toBeGreaterThanOrEqual(0)
  })

  it("count clients by several fields", async () => {
    const log = file("pair.log", [...trafficLog({ lines: 500, clients: 50 })].join(""))
    const { out, code } = await sluice([
      "rules",
      "suggest",
      log,
      "--by",
      "ip,method",
      "--windows",
      "1m",
      "--json",
    ])
    expect(code).toBe(0)
    expect(JSON.parse(out).rules[0].field).toEqual(["ip", "method"])
  })
})

it("the progress is updated at most ten times a second, and begins without a rate", () => {
  let written = ""
  const summary = { bytes: 0, allBytes: 100, lines: 0 } as never
  const stderr = { isTTY: true, write: (text: string) => (written += text) }
  const progress = new ReadingProgress({ stderr }, summary)
  progress.update()
  const once = written
  progress.update()
  expect(written).toBe(once)
  expect(progressText({ bytes: 0, allBytes: 100, lines: 0 }, 5)).toContain("? s left")
})
