import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { facts, readInput } from "../../packages/logs/src/reading/testing/read-all.ts"
import { trafficLog } from "../fixtures/logs/generate.ts"
import { useFolder } from "./folder.ts"
import { sluice } from "./in-process.ts"

const { folder, file } = useFolder()

const START = "2025-06-03T08:00:00"
const map = { time: "t", user_id: "u" }

describe("values in JSON lines", () => {
  it("may be numbers, booleans and single-element arrays, and lines without values are not requests", async () => {
    const line = (u: unknown) => `${JSON.stringify({ t: `${START}Z`, u })}\n`
    const log = line("ann") + line(7) + line(true) + line(["ben"]) + line(["a", "b"]) + line(undefined)
    const { records, summary } = await readInput(log, { map })
    expect(records.map(facts).map(({ named }) => (named as { user_id: string }).user_id)).toEqual(
      expect.arrayContaining(["ann", "7", "true", "ben"]),
    )
    expect(summary.skipped).toBeGreaterThan(0)
  })

  it("are invalid times if their seconds or offsets are invalid", async () => {
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
  ])("of the format %s are unparsed if the time is invalid", async (format, good, bad) => {
    const { summary } = await readInput(`${good}\n${bad}\n`, { format })
    expect(summary).toMatchObject({ requests: 1, unparsed: 1 })
  })

  it.each([
    [
      "a time zone of letters, in nginx",
      "$remote_addr [$time_local] $request_uri",
      "192.0.2.1 [03/Jun/2025:08:00:00 UTC] /a",
    ],
    ["letters in a duration", "$remote_addr $msec $request_time", "192.0.2.1 1748937600.000 fast"],
    ["no target in a request", '$remote_addr $msec "$request"', '192.0.2.1 1748937600.000 "GET  HTTP/1.1"'],
    [
      "letters in the bytes",
      "combined",
      '192.0.2.1 - - [03/Jun/2025:08:00:00 +0000] "GET / HTTP/1.1" 200 five',
    ],
  ])("do not count as requests if they have %s", async (_, format, line) => {
    const { summary } = await readInput(`${line}\n`, { format })
    expect(summary.requests).toBe(0)
  })

  it("may contain an address with an unmatched bracket", async () => {
    const log = "[2001:db8::1 1748937600.000 /a\n[2001:db8::1]:443 1748937600.000 /a\n"
    const { records } = await readInput(log, { format: "$remote_addr $msec $request_uri" })
    expect(records.at(-1)?.remoteAddress).toBe("2001:db8::1")
    expect(records.filter(({ remoteAddress }) => remoteAddress?.includes("["))).toEqual([])
  })

  it("of Apache may include the status before a redirect, which is not the status of the response", async () => {
    const format = "%h %{sec}t %U %s %>s"
    const { records } = await readInput("192.0.2.1 1748937600 /a 301 200\n", { format })
    expect(records[0]?.status).toBe(200)
    const first = await readInput("192.0.2.1 1748937600 /a 301\n", { format: "%h %{sec}t %U %s" })
    expect(first.records[0]?.status).toBeUndefined()
  })

  it("provide the time, the method and the URL that --map selects", async () => {
    const format = '$remote_addr $msec "$request" $started $verb $asked'
    const line = '192.0.2.1 1748937600.000 "GET /a HTTP/1.1" 2025-06-03T08:00:05Z PUT /b'
    const { records } = await readInput(`${line}\n`, {
      format,
      map: { time: "$started", method: "$verb", url: "$asked" },
    })
    expect(records[0]).toMatchObject({ method: "PUT", url: "/b", atMs: Date.UTC(2025, 5, 3, 8, 0, 5) })
  })

  it("of combined lines may lack the number of bytes", async () => {
    const { records } = await readInput('192.0.2.1 - - [03/Jun/2025:08:00:00 +0000] "GET / HTTP/1.1" 304 -\n')
    expect(records.map(({ status }) => status)).toEqual([304])
  })

  it("of combined lines may lack the status", async () => {
    const line = (status: string) =>
      `192.0.2.1 - - [03/Jun/2025:08:00:00 +0000] "GET / HTTP/1.1" ${status} 5 "-" "-"\n`
    const { records } = await readInput(line("200") + line("-") + line("000"))
    expect(records[0]?.status).toBe(200)
    for (const { status } of records.slice(1)) expect(status).toBeUndefined()
  })
})

describe("formats copied from configuration files", () => {
  it("of Apache may contain escaped tabs and quotes", async () => {
    const format = String.raw`LogFormat "%h\t%t\t\"%r\"\n" tabs`
    const log = '192.0.2.1\t[03/Jun/2025:08:00:00 +0000]\t"GET /a HTTP/1.1"\n'
    // Remove the escaped line break, because lines are read without their line breaks.
    const { records } = await readInput(log, { format: format.replace("\\n", "") })
    expect(records.map(({ remoteAddress, url }) => [remoteAddress, url])).toEqual([["192.0.2.1", "/a"]])
  })

  it("of nginx may consist of several quoted strings", async () => {
    const format = 'log_format short "$remote_addr [$time_local] " "$request_uri";'
    const { records } = await readInput("192.0.2.1 [03/Jun/2025:08:00:00 +0000] /a\n", { format })
    expect(records[0]).toMatchObject({ remoteAddress: "192.0.2.1", url: "/a" })
  })

  it("provide the header that --map selects instead of the header with the same name", async () => {
    const format = "$remote_addr [$time_local] $http_x_id $upstream_id"
    const { records } = await readInput("192.0.2.1 [03/Jun/2025:08:00:00 +0000] theirs ours\n", {
      format,
      map: { "header:X-Id": "$upstream_id" },
    })
    expect(records[0]?.headers?.["x-id"]).toBe("ours")
  })

  it("result in the path / for a URL that has a query but no path", async () => {
    const format = "$remote_addr [$time_local] $request_uri"
    const { records } = await readInput("192.0.2.1 [03/Jun/2025:08:00:00 +0000] http://a.example?x=1\n", {
      format,
    })
    expect(records[0]?.url).toBe("/?x=1")
  })

  it("of CloudFront already name the address, so --map must not", async () => {
    const log = "#Version: 1.0\n#Fields: date time c-ip cs-method cs-uri-stem sc-status\n"
    await expect(readInput(log, { format: "cloudfront", map: { ip: "c-ip" } })).rejects.toThrow(
      "--map ip=c-ip: CloudFront logs name it themselves; leave this entry out",
    )
  })
})

describe("unusual replays", () => {
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

  it("compare rules if the only refused client appears late in the log", async () => {
    const strict = file("s.yaml", "rules:\n  - { name: a, field: ip, limit: 1, window: 1 minute }\n")
    const none = file("n.yaml", "rules: []\n")
    const log = file("b.log", line("192.0.2.1", 0) + line("192.0.2.2", 1) + line("192.0.2.2", 2))
    const against = async (one: string, other: string) =>
      JSON.parse((await sluice(["rules", "replay", one, log, "--against", other, "--json"])).out).against
    expect(await against(strict, none)).toMatchObject({ newlyRefused: { requests: 1, clients: 1 } })
    expect(await against(none, strict)).toMatchObject({ noLongerRefused: { requests: 1, clients: 1 } })
  })

  it("count the same difference from the log for several lines", async () => {
    const rules = file("r.yaml", "rules:\n  - { name: a, field: ip, limit: 9, window: 1 minute }\n")
    const entry = (at: number) =>
      `${JSON.stringify({ t: 1_748_937_600_000 + at, ip: "192.0.2.1", ratelimit: { policy: "a", allowed: false } })}\n`
    const log = file("l.log", entry(0) + entry(1))
    const argv = ["rules", "replay", rules, log, "--map", "time=t", "--map", "ip=ip", "--json"]
    expect(JSON.parse((await sluice(argv)).out).live).toMatchObject({ compared: 2, different: 2 })
  })

  it("count all differences from the log, and show the first 10,000", async () => {
    const rules = file("r.yaml", "rules:\n  - { name: a, field: ip, limit: 9, window: 1 minute }\n")
    const entry = (_: unknown, at: number) =>
      `${JSON.stringify({ t: 1_748_937_600_000 + at * 10_000, ip: "192.0.2.1", ratelimit: { policy: "a", allowed: false } })}\n`
    const log = file("many.log", Array.from({ length: 10_001 }, entry).join(""))
    const argv = ["rules", "replay", rules, log, "--map", "time=t", "--map", "ip=ip", "--json"]
    const { live } = JSON.parse((await sluice(argv)).out)
    expect([live.different, live.differences.length]).toEqual([10_001, 10_000])
  })

  it("write a report even if a rule has no clients", async () => {
    const rules = file(
      "none.yaml",
      "rules:\n  - { name: a, field: ip, limit: 9, window: 1 minute, match: { path: /never } }\n",
    )
    const report = join(folder, "none.html")
    const { code } = await sluice([
      "rules",
      "replay",
      rules,
      file("a.log", line("192.0.2.1", 0)),
      "--report",
      report,
    ])
    expect(code).toBe(0)
    expect(readFileSync(report, "utf8")).toContain("Peaks of clients: the rule has no clients.")
  })

  it("report how many lines came too late to be sorted", async () => {
    const rules = file("r.yaml", "rules:\n  - { name: a, field: ip, limit: 9, window: 1 minute }\n")
    const log = file(
      "late.log",
      line("192.0.2.1", 10).repeat(20_000) + line("192.0.2.1", 50) + line("192.0.2.1", 0),
    )
    const { out } = await sluice(["rules", "replay", rules, log, "--reorder", "1s"])
    expect(out).toContain(
      "1 line came too late to be sorted. Late lines count at the time of the line before.",
    )
  })
})

describe("unusual suggestions", () => {
  it("name the group of a rule that has neither a name nor a path", async () => {
    const log = file("post.log", [...trafficLog({ lines: 500, clients: 50 })].join(""))
    const rules = file(
      "posts.yaml",
      "rules:\n  - { field: ip, limit: 9, window: 1m, match: { methods: [POST] } }\n",
    )
    const argv = ["rules", "suggest", log, "--match-from", rules, "--windows", "1m", "--json"]
    expect(JSON.parse((await sluice(argv)).out).groups.map(({ name }: { name: string }) => name)).toContain(
      "rule",
    )
  })

  it("report that several clients make most of the requests", async () => {
    const line = (client: string) => `${client} - - [03/Jun/2025:08:00:00 +0000] "GET / HTTP/1.1" 200 5\n`
    const two = (line("192.0.2.1") + line("192.0.2.2")).repeat(200)
    const others = Array.from({ length: 200 }, (_, at) => line(`198.51.100.${at}`)).join("")
    const log = file("two.log", two + others)
    const { out } = await sluice(["rules", "suggest", log, "--windows", "1m"])
    expect(out).toContain("2 clients make 66.7% of the 600 requests.")
    expect(out).toContain(" with them and without them: ")
  })

  it("estimate the refused requests from a sample of the clients", async () => {
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
