import { readFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { describe, expect, it } from "vitest"
import { trafficLog } from "../fixtures/logs/generate.ts"
import { useFolder } from "./folder.ts"
import { sluice } from "./in-process.ts"

const { folder, file } = useFolder()

const START_MS = Date.UTC(2025, 5, 3, 8)

/** Returns a combined line of a request, `afterS` seconds after 08:00. */
function line(client: string, afterS: number, request = "GET / HTTP/1.1", status = 200): string {
  const clock = new Date(START_MS + afterS * 1_000).toISOString().slice(11, 19)
  return `${client} - - [03/Jun/2025:${clock} +0000] "${request}" ${status} 5 "-" "curl/8"\n`
}

function lineAt(client: string, atMs: number): string {
  const [, day, month, year, time] = /(\d+) (\w+) (\d+) ([\d:]+)/.exec(new Date(atMs).toUTCString()) ?? []
  return `${client} - - [${day}/${month}/${year}:${time} +0000] "GET / HTTP/1.1" 200 5 "-" "curl/8"\n`
}

/** Returns a line of pino about a request, `afterMs` milliseconds after 08:00. */
function pinoLine(afterMs: number, request: object): string {
  const [time, res, msg] = [START_MS + afterMs, { statusCode: 200 }, "request completed"]
  return JSON.stringify({ time, req: { method: "GET", url: "/", ...request }, res, responseTime: 0, msg })
}

const rules = (list: string): string => `rules:\n${list.replace(/^ +/gm, "").replace(/^(?=.)/gm, "  - ")}`
const PER_IP = rules("{ name: per-ip, field: ip, limit: 2, window: 1 minute }")
const ANN = "192.0.2.1"
const BEN = "192.0.2.2"

/** Replays a log under rules, and returns what the command prints. */
function replayText(log: string, rulesText: string, ...argv: string[]) {
  return sluice(["rules", "replay", file("rules.yaml", rulesText), file("access.log", log), ...argv])
}

/** Replays a log under rules, and returns the JSON result. */
async function replay(log: string, rulesText: string, ...argv: string[]) {
  const { code, out, err } = await replayText(log, rulesText, "--json", ...argv)
  return { code, result: JSON.parse(out), err }
}

describe("sluice rules replay", () => {
  it("prints what each rule would have refused, and which clients", async () => {
    const log = [0, 1, 2, 3].map((second) => line(ANN, second)).join("") + line(BEN, 200)
    const { code, out, err } = await replayText(log, PER_IP)
    expect(err).toBe("")
    expect(code).toBe(0)
    expect(
      out,
    ).toBe(`The log shows what clients did without these rules. A refused client may retry, slow down or leave.
${join(folder, "access.log")}: combined, 5 lines, 3 min 20 s, 2 clients; 0 lines reordered, 0 late, 0 unparsed
rule       requests  refused         clients         peak of the refused clients, relative to the limit
per-ip            5        2  40.0%        1  50.0%  0 up to 1.5x, 1 up to 5x, 0 above 5x
all rules         5        2  40.0%        1  50.0%

client     rule    requests  refused  peak
192.0.2.1  per-ip         4        2  2.0x
`)
  })

  it.each([
    ["from the first", 1],
    ["from the last day of short months", 31],
  ])("counts the months of a leap year in Berlin like a model, %s", async (_, anchor) => {
    const clients = [ANN, BEN, "192.0.2.3"]
    const limit = 205
    const inBerlin = new Intl.DateTimeFormat("sv-SE", { timeZone: "Europe/Berlin" })
    const counts = new Map<string, number>()
    const refused = new Map<string, number>()
    let log = ""
    for (let atMs = Date.UTC(2023, 11, 30); atMs < Date.UTC(2025, 1, 2); atMs += 2_580_000) {
      // Each client calls on its own days, so a month gains and loses different clients if its midnight is wrong.
      const utcDay = Math.floor(atMs / 86_400_000)
      const client = clients[[0, 1, 0, 2, 0][(utcDay * 7 + (utcDay >> 5)) % 5] as number] as string
      log += lineAt(client, atMs)
      const [year = 0, month = 0, day = 0] = inBerlin.format(atMs).split("-").map(Number)
      const lastDay = new Date(Date.UTC(year, month, 0)).getUTCDate()
      const period = `${client} ${year * 12 + month - (day < Math.min(anchor, lastDay) ? 1 : 0)}`
      const count = (counts.get(period) ?? 0) + 1
      counts.set(period, count)
      if (count > limit) refused.set(client, (refused.get(client) ?? 0) + 1)
    }
    const monthly = rules(
      `{ name: monthly, field: ip, limit: ${limit}, per: month, time_zone: Europe/Berlin, anchor: ${anchor} }`,
    )
    const report = join(folder, "year.html")
    const { result } = await replay(log, monthly, "--report", report)
    const peakOf = (client: string) => {
      const ofClient = [...counts].filter(([period]) => period.startsWith(`${client} `))
      return Math.max(...ofClient.map(([, count]) => count)) / limit
    }
    const expected = [...refused].map(([client, count]) => ({ client, refused: count, peak: peakOf(client) }))
    expect(expected.length).toBeGreaterThan(0)
    expect(result.clients).toMatchObject(expected)
    const total = [...refused.values()].reduce((sum, count) => sum + count, 0)
    expect(result.rules).toMatchObject([{ window: "month", refused: total, tooShort: false }])
    expect(readFileSync(report, "utf8")).toContain(`${limit} per month`)
    // An entry of the log between both midnights would be in another month in UTC.
    const { result: inUtc } = await replay(log, monthly.replace("Europe/Berlin", "UTC"))
    expect(inUtc.rules[0].refused).not.toBe(total)
  })

  it("prints the numbers as JSON with --json", async () => {
    const log = [0, 1, 2, 3].map((second) => line(ANN, second)).join("") + line(BEN, 200)
    const { result, code } = await replay(log, PER_IP)
    expect(code).toBe(0)
    expect(result).toMatchObject({
      schema: 1,
      ok: true,
      log: {
        ...{ lines: 5, requests: 5, late: 0, unparsed: 0, clients: 2, resolutionMs: 1_000 },
        ...{ from: START_MS, to: START_MS + 200_000 },
      },
      rules: [
        {
          ...{ name: "per-ip", seen: 5, refused: 2, judged: true, limit: 2, window: "1 minute" },
          clients: { seen: 2, refused: 1, bystanders: 0 },
          ratios: [
            { upTo: 1.5, clients: 0 },
            { upTo: 5, clients: 1 },
            { upTo: null, clients: 0 },
          ],
        },
      ],
      total: { seen: 5, refused: 2, clients: { seen: 2, refused: 1 } },
      clients: [
        {
          ...{ client: ANN, rule: "per-ip", requests: 4, refused: 2, peak: 2 },
          ...{ firstRefused: START_MS + 2_000, lastRefused: START_MS + 3_000 },
        },
      ],
      bounds: [],
    })
  })

  it("replays shadow rules, but neither counts their refusals nor lets them break a bound", async () => {
    const log = [0, 1, 2].map((second) => line(ANN, second)).join("")
    const shadow = PER_IP.replace("}", ", shadow: true }")
    const { result, code } = await replay(log, shadow, "--max-refused", "0")
    expect(code).toBe(0)
    expect(result).toMatchObject({
      rules: [{ shadow: true, refused: 1, clients: { refused: 1 } }],
      total: { refused: 0, clients: { refused: 0 } },
    })
    expect(result.notes).toContain(
      "Shadow rules refuse nothing, so their numbers are what they would have refused: per-ip.",
    )
  })

  it.each(["sliding-window", "token-bucket"])(
    "shows the total peak of all clients for a rule that counts the whole service, with %s",
    async (algorithm) => {
      const log = [0, 0, 0, 1, 1, 200].map((second, at) => line(`192.0.2.${at}`, second)).join("")
      const list = rules(
        `{ name: service, limit: 4, window: 1 minute, algorithm: ${algorithm} }\n{ name: per-ip, field: ip, limit: 4, window: 1 minute }`,
      )
      const { result } = await replay(log, list)
      const [service, perIp] = result.rules
      expect(service).toMatchObject({ refused: 1, clients: { seen: 6, refused: 1, bystanders: 1 } })
      // The bucket has regained a fraction of a unit after a second.
      expect(service.peak).toBeCloseTo(1.25, 1)
      expect(perIp).not.toHaveProperty("peak")
      const { out } = await replayText(log, list)
      expect(out).toMatch(/^service +6 +1 +16\.7% +1 +16\.7% +1\.[23]x, all clients together$/m)
    },
  )

  describe("a rule that the log cannot judge", () => {
    const PER_USER = rules("{ name: per-user, field: user_id, limit: 1, window: 1 minute }")

    it("is not judged, and makes the command exit with 2", async () => {
      const log = line(ANN, 0) + line(ANN, 1)
      const { result, code } = await replay(log, PER_USER)
      expect(code).toBe(2)
      expect(result).toMatchObject({
        ok: false,
        rules: [{ name: "per-user", judged: false, missing: ["user_id"], seen: 0, refused: 0 }],
      })
      const plain = await replayText(log, PER_USER)
      expect(plain.out).toMatch(/^per-user +not judged$/m)
      expect(plain.err).toContain("error: rule per-user could not be judged, because the log lacks user_id")
    })

    it("is accepted with --skip-unjudged", async () => {
      const { result, code } = await replay(line(ANN, 0), PER_USER, "--skip-unjudged")
      expect([code, result.ok]).toEqual([0, true])
    })

    it("is judged if --map reads its field", async () => {
      const log = ["ann", "ben", "ann"]
        .map((user, second) => line(ANN, second).replace("- -", `- ${user}`))
        .join("")
      const { result, code } = await replay(log, PER_USER, "--map", "user_id=remote_user")
      expect(code).toBe(0)
      expect(result.rules).toMatchObject([{ judged: true, seen: 3, refused: 1 }])
      expect(result.clients).toMatchObject([{ client: "ann", refused: 1 }])
    })

    it("may also be a rule that matches by a header that the log lacks", async () => {
      const byPlan = rules(
        '{ name: free, field: ip, limit: 1, window: 1 minute, match: { fields: { "header:x-plan": [free] } } }',
      )
      const { result, code } = await replay(line(ANN, 0), byPlan)
      expect(code).toBe(2)
      expect(result.rules).toMatchObject([{ judged: false, missing: ["header:x-plan"] }])
    })
  })

  it("does not judge a rule with concurrent, says why, and still exits with 0", async () => {
    const list = rules(
      "{ name: streams, field: ip, concurrent: 1, hold: 2s }\n{ name: per-ip, field: ip, limit: 2, window: 1 minute }",
    )
    const log = line(ANN, 0) + line(ANN, 1)
    const { result, code } = await replay(log, list, "--against", file("before.yaml", list))
    expect(code).toBe(0)
    expect(result).toMatchObject({
      ok: true,
      problems: [],
      rules: [
        { name: "streams", window: "2s", judged: false, missing: ["concurrent"], seen: 0 },
        { name: "per-ip", judged: true, seen: 2 },
      ],
    })
    const about = (texts: readonly string[]) => texts.filter((text) => text.startsWith("streams: "))
    expect(about(result.notes)).toEqual([
      "streams: not judged: a log does not show when requests end. Try it as a shadow rule in the app.",
    ])
    const { out } = await replayText(log, list)
    expect(out).toMatch(/^streams +not judged$/m)
  })

  it("reads the amount of a unit from the field of the same name, and takes 1 without it", async () => {
    const usage = [400, 500, 101, "many"].map((total_tokens, i) => pinoLine(i, { usage: { total_tokens } }))
    const log = `${[...usage, pinoLine(9, {})].join("\n")}\n`
    const tpm = rules("{ name: tpm, limit: 1000, window: 1 minute, counts: tokens }")
    const { result } = await replay(log, tpm, "--map", "tokens=req.usage.total_tokens")
    expect(result.rules[0]).toMatchObject({ name: "tpm", refused: 1 })
    expect(result.notes).toContainEqual(
      "tpm: counts tokens, but 2 requests without a whole number in the field tokens took 1. Log it, or read it with --map tokens=….",
    )
  })

  it("marks the result of a short window as pessimistic, and also shows it with each second's lines spread evenly", async () => {
    const perSecond = rules("{ name: burst, field: ip, limit: 2, window: 200 ms }")
    const log = Array.from({ length: 8 }, () => line(ANN, 0)).join("")
    const { result } = await replay(log, perSecond)
    expect(result.rules).toMatchObject([{ refused: 6, spread: { refused: 0, clients: 0 } }])
    expect(result.notes.join()).toContain("burst: pessimistic: the log's times have a resolution of 1 s")
  })

  it("reports that a window is too long for the log, and that requests had status 429", async () => {
    const hourly = rules("{ name: hourly, field: ip, limit: 2, window: 1 hour }")
    const log = line(ANN, 0) + line(ANN, 60, "GET / HTTP/1.1", 429)
    const { result } = await replay(log, hourly)
    expect(result.rules).toMatchObject([{ tooShort: true, seen: 2 }])
    expect(result.notes.join()).toContain(
      "hourly: log too short: its window of 1 hour is longer than a third",
    )
    expect(result.notes.join()).toContain("1 request had status 429: another limiter refused it")
    const monthly = await replay(log, rules("{ name: monthly, field: ip, limit: 2, per: month }"))
    expect(monthly.result.notes.join()).toContain("monthly: log too short: its window of a month is longer")
    const without = await replay(log, hourly, "--without-status", "429")
    expect(without.result.log).toMatchObject({ tooManyRequests: 0, skipped: 1, requests: 1 })
  })

  it("reports clients as bystanders if they are refused because of other clients in a shared counter", async () => {
    const whole = rules("{ name: all, limit: 3, window: 1 minute }")
    const log = [0, 1, 2, 3].map((second) => line(ANN, second)).join("") + line(BEN, 4)
    const { result } = await replay(log, whole)
    expect(result.rules).toMatchObject([{ refused: 2, clients: { seen: 2, refused: 2, bystanders: 1 } }])
    expect(result.notes.join()).toContain("all: 1 client of 2 would not exceed the limit alone")
  })

  describe("--against", () => {
    it("shows which requests are newly refused or no longer refused, by rule and by client", async () => {
      const old = rules("{ name: per-ip, field: ip, limit: 3, window: 1 minute, match: { methods: [GET] } }")
      const after = rules(
        "{ name: per-ip, field: ip, limit: 2, window: 1 minute, match: { methods: [GET] } }\n{ name: posts, field: ip, limit: 1, window: 1 minute, match: { methods: [POST] } }",
      )
      const log =
        [0, 1, 2, 3].map((second) => line(ANN, second)).join("") +
        [5, 6].map((second) => line(BEN, second, "POST / HTTP/1.1")).join("")
      const { result, code } = await replay(
        log,
        after,
        ...["--against", file("old.yaml", old), "--max-newly-refused", "1"],
      )
      expect(result.against).toMatchObject({
        newlyRefused: { requests: 2, clients: 1 },
        noLongerRefused: { requests: 0, clients: 0 },
        rules: [
          { name: "per-ip", newlyRefused: 1, noLongerRefused: 0 },
          { name: "posts", newlyRefused: 1, noLongerRefused: 0 },
        ],
        clients: [
          { client: ANN, before: 1, after: 2 },
          { client: BEN, before: 0, after: 1 },
        ],
      })
      expect(code).toBe(1)
      const reverse = await replay(log, old, "--against", file("new.yaml", after))
      expect(reverse.result.against).toMatchObject({
        newlyRefused: { requests: 0, clients: 0 },
        noLongerRefused: { requests: 2, clients: 1 },
      })
    })
  })

  it("replays each rule with each algorithm, and explains why an algorithm does not fit", async () => {
    const list = rules(
      "{ name: per-ip, field: ip, limit: 2, window: 1 minute }\n{ name: bucket, field: ip, limit: 2, window: 1 minute, algorithm: token-bucket, burst: 9 }",
    )
    const log = [0, 1, 2, 31, 32, 61].map((second) => line(ANN, second)).join("")
    const { result, code } = await replay(log, list, "--algorithm", "token-bucket,fixed-window")
    expect(code).toBe(0)
    expect(result.algorithms).toMatchObject([
      { rule: "per-ip", algorithm: "token-bucket", refused: 2, clients: 1 },
      { rule: "per-ip", algorithm: "fixed-window", refused: 3, clients: 1 },
      { rule: "bucket", algorithm: "token-bucket", refused: 0, clients: 0 },
      { rule: "bucket", algorithm: "fixed-window", problem: expect.stringMatching(/^burst: /) },
    ])
  })

  describe("bounds", () => {
    const log = [0, 1, 2].map((second) => line(ANN, second)).join("") + line(BEN, 3)

    it.each([
      [["--max-refused", "1"], 0],
      [["--max-refused", "25%"], 0],
      [["--max-refused", "24%"], 1],
      [["--max-refused-clients", "50%"], 0],
      [["--max-refused-clients", "0"], 1],
    ])("%j make the command exit with %d", async (argv, code) => {
      expect((await replay(log, PER_IP, ...argv)).code).toBe(code)
    })

    it("fail for a client that must never be refused", async () => {
      const known = file("known.txt", "192.0.2.0/30\n")
      const { result, code } = await replay(log, PER_IP, "--never", known)
      expect(code).toBe(1)
      expect(result.bounds).toEqual([{ bound: `--never ${known}`, value: `refused: ${ANN}`, holds: false }])
      expect((await replay(log, PER_IP, "--never", file("others.txt", `${BEN}\n`))).code).toBe(0)
    })
  })

  it("merges compressed files and standard input by time", async () => {
    const paths = [
      file("rules.yaml", PER_IP),
      file("b.log.gz", gzipSync(line(ANN, 2) + line(ANN, 6))),
      file("a.log", line(ANN, 0) + line(ANN, 4)),
      "-",
    ]
    const { out, code } = await sluice(["rules", "replay", ...paths, "--json"], {
      stdin: line(BEN, 1) + line(BEN, 5),
    })
    expect(code).toBe(0)
    expect(JSON.parse(out)).toMatchObject({
      log: { requests: 6, reordered: 0, late: 0 },
      clients: [{ client: ANN, refused: 2, firstRefused: START_MS + 4_000 }],
    })
  })

  it("counts a client behind trusted proxies by the address that they report", async () => {
    const log = [1, 2, 3]
      .map((host, second) =>
        pinoLine(second, { remoteAddress: "10.0.0.1", headers: { "x-forwarded-for": `192.0.2.${host}` } }),
      )
      .join("\n")
    expect((await replay(log, PER_IP)).result.log.clients).toBe(1)
    expect((await replay(log, PER_IP, "--trusted-proxies", "1")).result.log.clients).toBe(3)
    expect((await replay(log, PER_IP, "--trusted-proxies", "10.0.0.0/8,loopback")).result.log.clients).toBe(3)
  })

  it("compares its verdicts with the verdicts that logFields has written", async () => {
    const entry = (second: number, ratelimit: object) =>
      JSON.stringify({ time: START_MS + second * 1_000, ip: ANN, method: "GET", url: "/", ratelimit })
    const log = [
      entry(0, { policy: "per-ip", allowed: true, remaining: 1, limit: 2 }),
      entry(1, {
        policy: "per-ip",
        allowed: false,
        remaining: 0,
        limit: 2,
        refusal: "quota",
        retryAfterMs: 5,
      }),
      entry(2, {
        policy: "per-ip",
        allowed: false,
        remaining: 0,
        limit: 2,
        refusal: "quota",
        retryAfterMs: null,
      }),
    ].join("\n")
    const map = ["--map", "ip=ip", "--map", "method=method", "--map", "url=url", "--map", "time=time"]
    const { result } = await replay(log, PER_IP, ...map)
    expect(result.live).toEqual({
      compared: 3,
      different: 1,
      differences: [
        { file: join(folder, "access.log"), line: 2, live: "refused by per-ip", replayed: "admitted" },
      ],
    })
  })

  it("hashes clients on request", async () => {
    const log = [0, 1, 2].map((second) => line(ANN, second)).join("")
    const { result } = await replay(log, PER_IP, "--hash-keys", "--against", file("none.yaml", "rules: []\n"))
    expect(result.clients).toMatchObject([{ client: expect.stringMatching(/^[0-9a-f]{16}$/) }])
    expect(JSON.stringify(result)).not.toContain(ANN)
  })

  it("writes the report to the file of --report", async () => {
    const log = [0, 1, 2].map((second) => line(ANN, second)).join("")
    const report = join(folder, "replay.html")
    const { code } = await replay(log, PER_IP, "--report", report)
    expect(code).toBe(0)
    const html = readFileSync(report, "utf8")
    expect(html).toMatch(/^<!doctype html>/i)
    expect(html).toContain(ANN)
    expect((await replay(log, PER_IP, "--report", join(folder, "no", "where.html"))).code).toBe(2)
  })

  it("gives the same result for lines that are shuffled within the reorder time", async () => {
    const text = [...trafficLog({ lines: 2_000, durationMs: 600_000, clients: 50 })].join("")
    const lines = text.trimEnd().split("\n")
    // Swap blocks of lines. Lines of the same second keep their order, because their times are equal.
    const secondOf = (each: string) => each.slice(each.indexOf("["), each.indexOf("]"))
    const seconds = [...new Set(lines.map(secondOf))].map((second) =>
      lines.filter((each) => secondOf(each) === second),
    )
    const shuffled = seconds
      .flatMap((_, at) => (at % 3 === 0 ? [...seconds.slice(at, at + 3)].reverse() : []))
      .flat()
    expect(shuffled).toHaveLength(lines.length)
    const perMinute = rules("{ name: per-ip, field: ip, limit: 10, window: 1 minute }")
    const [sorted, other] = [
      await replay(text, perMinute),
      await replay(`${shuffled.join("\n")}\n`, perMinute),
    ]
    const { reordered, ...log } = other.result.log
    expect(reordered).toBeGreaterThan(0)
    expect({ ...other.result, log }).toEqual({
      ...sorted.result,
      log: { ...sorted.result.log, reordered: undefined },
    })
  })

  it("shows progress only on a terminal", async () => {
    const paths = [file("rules.yaml", PER_IP), file("a.log", line(ANN, 0))]
    expect((await sluice(["rules", "replay", ...paths])).err).toBe("")
    const terminal = await sluice(["rules", "replay", ...paths], { isTTY: true })
    expect(terminal.err.replaceAll("\r\u001b[K", "")).toMatch(/^\[#+\] 100% {2}1 lines/)
    expect(terminal.err.endsWith("\r\u001b[K")).toBe(true)
  })

  it.each([
    ["no log", [], "missing required argument 'logs'"],
    [
      "rules to compare and log from standard input",
      ["RULES", "-", "--against", "-"],
      "standard input is given twice",
    ],
    ["rules and log from standard input", ["-", "-"], "standard input is given twice"],
    ["the log before the rules", ["LOG", "RULES"], "is in the place of the rules: give"],
    ["a log that does not exist", ["RULES", "/nowhere.log"], "/nowhere.log does not exist"],
    [
      "a bound that is not a number",
      ["RULES", "LOG", "--max-refused", "few"],
      "Expected a number, such as 100",
    ],
    ["a bound without rules to compare", ["RULES", "LOG", "--max-newly-refused", "1"], "needs --against"],
    [
      "thresholds in the wrong order",
      ["RULES", "LOG", "--slightly", "9"],
      "--slightly 9 is more than --far 5",
    ],
    ["an unknown algorithm", ["RULES", "LOG", "--algorithm", "gcra"], "gcra"],
    ["a missing list of clients", ["RULES", "LOG", "--never", "/no.txt"], "--never: /no.txt cannot be read"],
    ["an unknown format", ["RULES", "LOG", "--format", "iis"], "iis"],
    ["an invalid proxy", ["RULES", "LOG", "--trusted-proxies", "proxy"], "proxy"],
    ["a reorder time without a unit", ["RULES", "LOG", "--reorder", "10"], "Expected a time"],
    [
      "a reorder time of two hours",
      ["RULES", "LOG", "--reorder", "2h"],
      "Expected a time of at most an hour",
    ],
    ["a threshold below 1", ["RULES", "LOG", "--far", "0.5"], "Expected a number of at least 1"],
    [
      "a threshold that is not a number",
      ["RULES", "LOG", "--slightly", "x"],
      "Expected a number of at least 1",
    ],
    ["no room for counters", ["RULES", "LOG", "--max-keys", "0"], "Expected a whole number from 1"],
    [
      "too much room for counters",
      ["RULES", "LOG", "--max-keys", "999999999"],
      "Expected a whole number from 1",
    ],
    ["an invalid map", ["RULES", "LOG", "--map", "user_id"], "Expected a field and its source"],
    ["an invalid status", ["RULES", "LOG", "--without-status", "4xx"], "Expected a status"],
  ])("exits with 2 for %s", async (_name, argv, message) => {
    const paths: Record<string, string> = {
      RULES: file("rules.yaml", PER_IP),
      LOG: file("a.log", line(ANN, 0)),
    }
    const given = argv.length === 0 ? [paths.RULES as string] : argv.map((each) => paths[each] ?? each)
    const { code, err } = await sluice(["rules", "replay", ...given], { stdin: PER_IP })
    expect(err).toContain(message)
    expect(code).toBe(2)
  })

  it("exits with 1 for invalid rules, and with 2 for a log without requests", async () => {
    const invalid = await replay(
      line(ANN, 0),
      rules("{ name: per-ip, field: ip, limit: 0, window: 1 minute }"),
    )
    expect([invalid.code, invalid.result.ok]).toEqual([1, false])
    const { code, err } = await replayText("", PER_IP)
    expect(code).toBe(2)
    expect(err).toContain("error: the logs contain no request")
  })

  it("shows lines that are not in the format, with visible control characters", async () => {
    const log = `${line(ANN, 0)}${line(ANN, 1)}${line(ANN, 2)}bad \u001b[31mline\n`
    const { out, err } = await replayText(log, PER_IP)
    expect(out).toContain("1 unparsed")
    expect(err).toContain(`${join(folder, "access.log")}:4: bad \\u{1b}[31mline`)
  })

  it("requires --service if the file contains rules of several services", async () => {
    const several = `service_id: a\n${PER_IP}\n---\nservice_id: b\nrules:\n  - { name: other, field: ip, limit: 1, window: 1 minute }\n`
    const log = line(ANN, 0) + line(ANN, 1)
    const without = await replayText(log, several)
    expect([without.code, without.err]).toEqual([2, expect.stringContaining("--service")])
    const { result } = await replay(log, several, "--service", "b")
    expect(result.rules).toMatchObject([{ name: "other", refused: 1 }])
  })

  describe("keeps its numbers honest", () => {
    it("does not suggest a higher limit for refusals that no limit prevents", async () => {
      const list = rules(
        `{ name: listed, field: ip, limit: 10, window: 1 minute, deny: [${ANN}] }\n{ name: keyed, field: "header:user-agent", limit: 10, window: 1 minute, on_missing: deny }`,
      )
      const log = line(ANN, 0) + line(BEN, 1).replace('"curl/8"', '"-"') + line(BEN, 2)
      const { result } = await replay(log, list)
      expect(result.rules).toMatchObject([
        { refused: 1, reasons: { denied: 1 }, clients: { refused: 1, bystanders: 0 } },
        { refused: 1, reasons: { "missing-field": 1 }, clients: { refused: 1, bystanders: 0 } },
      ])
      for (const { ratios } of result.rules)
        expect(ratios.map(({ clients }: { clients: number }) => clients)).toEqual([0, 0, 0])
      expect(result.notes.join("\n")).toContain("listed: not refused for its quota: 1 (denied)")
      expect(result.notes.join("\n")).not.toContain("slightly over")
    })

    it("suggests a higher limit for a single rule", async () => {
      const log = [0, 1, 2].map((second) => line(ANN, second)).join("")
      const { result } = await replay(log, PER_IP)
      expect(result.notes).toContain(
        'per-ip: 1 client is only slightly over the limit; a limit of 3 would refuse 0 clients instead of 1 (see "sluice rules suggest").',
      )
      const higher = await replay(log, PER_IP.replace("limit: 2", "limit: 3"))
      expect(higher.result.rules).toMatchObject([{ clients: { refused: 0 } }])
    })

    it("counts units, overrides and penalties as a limiter does", async () => {
      const list = rules(
        `{ name: costly, field: ip, limit: 4, window: 1 minute, cost: 2, overrides: { "${BEN}": 2 }, penalty: { refusals: 1, for: 10 minutes } }`,
      )
      const log = [0, 1, 2, 200].map((second) => line(ANN, second)).join("") + line(BEN, 201) + line(BEN, 202)
      const { result } = await replay(log, list)
      expect(result.rules).toMatchObject([{ refused: 3, reasons: { penalty: 3 } }])
      expect(result.clients).toMatchObject([
        { client: ANN, refused: 2, peak: 1.5 },
        { client: BEN, refused: 1, peak: 2 },
      ])
    })

    it("counts IPv6 clients by network", async () => {
      const log = ["2001:db8::1", "2001:db8::2", "2001:db8::3"]
        .map((address, at) => line(address, at))
        .join("")
      const { result } = await replay(log, PER_IP)
      expect(result.clients).toMatchObject([{ client: "2001:db8::/64", requests: 3, refused: 1 }])
    })

    it("measures the peak of a bucket's client by the units in the bucket", async () => {
      const bucket = rules(
        "{ name: bucket, field: ip, limit: 60, window: 1 minute, algorithm: token-bucket, burst: 2 }",
      )
      const log = [0, 0, 0, 0].map((second) => line(ANN, second)).join("")
      const { result } = await replay(log, bucket)
      expect(result.clients).toMatchObject([{ refused: 2, peak: 2 }])
    })

    it("identifies clients by the rule's field if the log has no addresses", async () => {
      const perUser = rules("{ name: per-user, field: user_id, limit: 1, window: 1 minute }")
      const log = ["ann", "ann", "ben"]
        .map((user, second) => JSON.stringify({ ts: START_MS + second, user }))
        .join("\n")
      const map = ["--map", "time=ts", "--map", "user_id=user"]
      const { result, code } = await replay(log, perUser, ...map, "--max-refused-clients", "0")
      expect(code).toBe(1)
      expect(result.total).toMatchObject({ clients: { seen: 2, refused: 1 } })
    })

    it("does not change precise times when it spreads lines with coarse times", async () => {
      const burst = rules("{ name: burst, field: ip, limit: 2, window: 100 ms, algorithm: sliding-log }")
      const coarse = file(
        "coarse.log",
        Array.from({ length: 10 }, (_, at) => line(`192.0.2.${at + 1}`, 0)).join(""),
      )
      const precise = [150, 300, 450, 600, 750].map((afterMs) =>
        pinoLine(afterMs, { remoteAddress: "198.51.100.1" }),
      )
      const { result } = await replay(precise.join("\n"), burst, coarse)
      expect(result.rules).toMatchObject([{ refused: 0, spread: { refused: 0, clients: 0 } }])
    })

    it("does not spread lines if all times are precise", async () => {
      const burst = rules("{ name: burst, field: ip, limit: 2, window: 100 ms }")
      const log = JSON.stringify({ ts: START_MS + 5, ip: ANN })
      const { result } = await replay(log, burst, "--map", "time=ts", "--map", "ip=ip")
      expect(result.rules[0]).not.toHaveProperty("spread")
    })

    it("reports that it replays elastic throttling and waiting differently", async () => {
      const list = rules(
        "{ name: stretchy, field: ip, limit: 2, window: 1 minute, throttle: { kind: elastic } }\n{ name: line, field: ip, limit: 2, window: 1 minute, throttle: { kind: queue } }",
      )
      const { result } = await replay(line(ANN, 0), list)
      const notes = result.notes.join("\n")
      expect(notes).toContain("stretchy: replayed as hard throttling")
      expect(notes).toContain("line: nothing waits in a replay")
    })

    it("is not ok without requests, even with --json", async () => {
      const { result, code } = await replay("", PER_IP)
      expect(code).toBe(2)
      expect(result).toMatchObject({
        ok: false,
        problems: ["the logs contain no request: check the files, or give their --format"],
      })
    })

    it("is not ok if most lines are unparsed", async () => {
      const { result, code } = await replay(`${line(ANN, 0)}bad\nbad\n`, PER_IP)
      expect([code, result.ok]).toEqual([2, false])
      expect(result.problems[0]).toContain("most lines are not in the format of their file")
    })

    it("is not ok if the memory was too small for the counters", async () => {
      const log = Array.from({ length: 30 }, (_, at) => line(`192.0.2.${at}`, 0)).join("")
      const { result, code } = await replay(log, PER_IP, "--max-keys", "1")
      expect([code, result.ok]).toEqual([2, false])
      expect(result.problems[0]).toContain("29 counters had no room: raise --max-keys")
    })

    it("is not ok if the log cannot judge a rule of --against", async () => {
      const perUser = file(
        "user.yaml",
        rules("{ name: per-user, field: user_id, limit: 1, window: 1 minute }"),
      )
      const { result, code } = await replay(line(ANN, 0), PER_IP, "--against", perUser)
      expect([code, result.ok]).toEqual([2, false])
      expect(result.problems[0]).toContain(`rule per-user of ${perUser} could not be judged`)
      expect((await replay(line(ANN, 0), PER_IP, "--against", perUser, "--skip-unjudged")).code).toBe(0)
    })

    it("is not ok if proxies are trusted and the log lacks their header", async () => {
      const { result, code } = await replay(line(ANN, 0), PER_IP, "--trusted-proxies", "1")
      expect([code, result.ok]).toEqual([2, false])
      expect(result.problems[0]).toContain("the log lacks the header x-forwarded-for or forwarded")
      expect((await replay(line(ANN, 0), PER_IP, "--trusted-proxies", "0")).code).toBe(0)
    })

    it("is not ok if proxies are trusted by number, but no request has their header", async () => {
      const log = ["-", "-"].map((via, second) => `${line(ANN, second).trimEnd()} "${via}"\n`).join("")
      const format =
        '$remote_addr - $remote_user [$time_local] "$request" $status $bytes_sent "$http_referer" "$http_user_agent" "$http_x_forwarded_for"'
      const options = ["--format", format, "--trusted-proxies"]
      const { result, code } = await replay(log, PER_IP, ...options, "1")
      expect([code, result.ok]).toEqual([2, false])
      expect(result.problems[0]).toContain("the log lacks the header x-forwarded-for or forwarded")
      expect((await replay(log.replace('"-"\n', `"${BEN}"\n`), PER_IP, ...options, "1")).code).toBe(0)
      // Without a trusted proxy among the addresses, no request needs the header.
      expect((await replay(log, PER_IP, ...options, "10.0.0.0/8")).code).toBe(0)
    })

    it("is not ok if no request has an address, and reports how many requests lack one", async () => {
      const json = (ip?: string) => `${JSON.stringify({ ts: START_MS, ip, user: "ann" })}\n`
      const options = ["--map", "time=ts", "--map", "user_id=user", "--map"]
      const typo = await replay(json(ANN) + json(BEN), PER_IP, ...options, "ip=client.ip")
      expect(typo.code).toBe(2)
      expect(typo.result.problems).toEqual([
        "no request has an address, so rules by address count all clients as one: log it, read it with --map, or give --skip-unjudged",
      ])
      const some = await replay(json(ANN) + json() + json("unknown"), PER_IP, ...options, "ip=ip")
      expect(some.code).toBe(0)
      expect(some.result.notes).toContain(
        "Without an address: 2 of 3 requests. Rules by address count them as one client.",
      )
      const byUser = rules("{ name: per-user, field: user_id, limit: 2, window: 1 minute }")
      const other = await replay(json() + json(), byUser, ...options, "ip=ip")
      expect(other.code).toBe(0)
      expect(other.result.notes.join()).not.toContain("Without an address")
    })

    it.each([
      [{}, undefined],
      [{ accept: "*/*" }, undefined],
      [{ "X-Forwarded-For": BEN }, "x-forwarded-for"],
      [{ Forwarded: [`for=${BEN}`] }, "forwarded"],
    ])("reports a proxy header as ignored only if a request has it: %j", async (headers, name) => {
      const request = { client_ip: ANN, method: "GET", uri: "/", headers }
      const log = JSON.stringify({ ts: START_MS / 1_000, request, duration: 0, status: 200 })
      const notes = (await replay(log, PER_IP)).result.notes.join()
      if (name === undefined) expect(notes).not.toContain("which is ignored")
      else expect(notes).toContain(`The log contains the header ${name}, which is ignored.`)
    })

    it("does not mistake its own refusals in the log for refusals by another limiter", async () => {
      const entry = (second: number, allowed: boolean, logged = true) =>
        `${JSON.stringify({
          ...{ time: START_MS + second * 1_000, req: { method: "GET", url: "/", remoteAddress: ANN } },
          ...{ res: { statusCode: allowed ? 200 : 429 }, responseTime: 0 },
          ...(logged && { ratelimit: { policy: "per-ip", allowed } }),
        })}\n`
      const log = entry(0, true) + entry(1, true) + entry(2, false) + entry(3, false)
      const own = (await replay(log, PER_IP)).result
      expect(own.live).toMatchObject({ compared: 4, different: 0 })
      expect(own.notes.join()).not.toContain("429")
      const both = (await replay(log + entry(4, false, false), PER_IP)).result
      expect(both.notes.join()).toContain("1 request had status 429: another limiter refused it")
    })

    it("reports that a mapped proxy header is ignored", async () => {
      const log = JSON.stringify({ ts: START_MS, ip: ANN, via: BEN })
      const map = ["--map", "time=ts", "--map", "ip=ip", "--map", "header:x-forwarded-for=via"]
      expect((await replay(log, PER_IP, ...map)).result.notes.join()).toContain("which is ignored")
      expect((await replay(log, PER_IP, ...map, "--trusted-proxies", "0")).result.notes.join()).not.toContain(
        "ignored",
      )
    })

    it("shows no client in any output with --hash-keys", async () => {
      const log = `${line(ANN, 0)}${line(ANN, 1)}${line(ANN, 2)}${ANN} x\n`
      const never = file("never.txt", `${ANN}\n`)
      const { out, err, code } = await replayText(log, PER_IP, "--hash-keys", "--never", never)
      expect(code).toBe(1)
      expect(out + err).not.toContain(ANN)
      expect(err).toContain("1 line not in the format")
    })
  })

  it("compares shadow refusals with the log, too", async () => {
    const shadow = PER_IP.replace("limit: 2", "limit: 1").replace("}", ", shadow: true }")
    const entry = (second: number, shadowed?: string[]) =>
      JSON.stringify({
        ts: START_MS + second * 1_000,
        ip: ANN,
        ratelimit: { policy: "", allowed: true, remaining: null, limit: null, ...(shadowed && { shadowed }) },
      })
    const log = [entry(0), entry(1, ["per-ip"]), entry(2)].join("\n")
    const { result } = await replay(log, shadow, "--map", "time=ts", "--map", "ip=ip")
    expect(result.live).toMatchObject({
      ...{ compared: 3, different: 1 },
      differences: [{ line: 3, live: "admitted", replayed: "admitted, shadow refusal by per-ip" }],
    })
  })

  it("does not write the report over an input or another file", async () => {
    const [rulesFile, logFile] = [file("rules.yaml", PER_IP), file("mine.log", line(ANN, 0))]
    const report = (path: string) => sluice(["rules", "replay", rulesFile, logFile, "--report", path])
    for (const path of [rulesFile, logFile, file("other.txt", "precious")]) {
      const before = readFileSync(path, "utf8")
      expect(await report(path)).toMatchObject({ code: 2, err: expect.stringContaining("--report: ") })
      expect(readFileSync(path, "utf8")).toBe(before)
    }
    const twice = join(folder, "twice.html")
    expect([(await report(twice)).code, (await report(twice)).code]).toEqual([0, 0])
  })

  it("finishes on a log that spans decades", async () => {
    const log = line(ANN, 0).replace("2025", "1990") + line(ANN, 0)
    const { result } = await replay(log, PER_IP)
    expect(result.timeline.admitted.length).toBeLessThanOrEqual(600)
    expect(result.log.requests).toBe(2)
  })
})
