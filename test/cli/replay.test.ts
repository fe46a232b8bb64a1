import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { trafficLog } from "../fixtures/logs/generate.ts"
import { sluice } from "./in-process.ts"

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-replay-"))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Writes a file into the folder and returns its path. */
function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

const START_MS = Date.UTC(2025, 5, 3, 8)

/** Returns a combined line of a request, `afterS` seconds after 08:00. */
function line(client: string, afterS: number, request = "GET / HTTP/1.1", status = 200): string {
  const clock = new Date(START_MS + afterS * 1_000).toISOString().slice(11, 19)
  return `${client} - - [03/Jun/2025:${clock} +0000] "${request}" ${status} 5 "-" "curl/8"\n`
}

const rules = (list: string): string => `rules:\n${list.replace(/^ +/gm, "").replace(/^(?=.)/gm, "  - ")}`
const PER_IP = rules("{ name: per-ip, field: ip, limit: 2, window: 1 minute }")
const ANN = "192.0.2.1"
const BEN = "192.0.2.2"

/** Replays a log under rules, and returns the JSON result. */
async function replay(log: string, rulesText: string, ...argv: string[]) {
  const [rulesFile, logFile] = [file("rules.yaml", rulesText), file("access.log", log)]
  const { code, out, err } = await sluice(["rules", "replay", rulesFile, logFile, "--json", ...argv])
  return { code, result: JSON.parse(out), err }
}

describe("sluice rules replay", () => {
  it("prints what each rule would have refused, and whom", async () => {
    const log = [0, 1, 2, 3].map((second) => line(ANN, second)).join("") + line(BEN, 200)
    const [rulesFile, logFile] = [file("r.yaml", PER_IP), file("a.log", log)]
    const { code, out, err } = await sluice(["rules", "replay", rulesFile, logFile])
    expect(err).toBe("")
    expect(code).toBe(0)
    expect(
      out,
    ).toBe(`The log shows what clients did without these rules. A refused client may retry, slow down or leave.
${logFile}: combined, 5 lines, 3 min, 2 clients; 0 lines reordered, 0 late, 0 unparsed
rule       requests  refused         clients         peak of the refused clients, relative to the limit
per-ip            5        2  40.0%        1  50.0%  0 up to 1.5x, 1 up to 5x, 0 above 5x
all rules         5        2  40.0%        1  50.0%

client     rule    requests  refused  peak
192.0.2.1  per-ip         4        2  2.0x
`)
  })

  it("has the numbers as JSON", async () => {
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
      "per-ip: shadow rule: it refuses nothing; the numbers are what it would have refused.",
    )
  })

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
      const plain = await sluice(["rules", "replay", file("u.yaml", PER_USER), file("u.log", log)])
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

    it("is a rule that matches by a header that the log lacks, too", async () => {
      const byPlan = rules(
        '{ name: free, field: ip, limit: 1, window: 1 minute, match: { fields: { "header:x-plan": [free] } } }',
      )
      const { result, code } = await replay(line(ANN, 0), byPlan)
      expect(code).toBe(2)
      expect(result.rules).toMatchObject([{ judged: false, missing: ["header:x-plan"] }])
    })
  })

  it("marks a short window as pessimistic, and shows the result with the lines of each second spread evenly", async () => {
    const perSecond = rules("{ name: burst, field: ip, limit: 2, window: 200 ms }")
    const log = Array.from({ length: 8 }, () => line(ANN, 0)).join("")
    const { result } = await replay(log, perSecond)
    expect(result.rules).toMatchObject([{ refused: 6, spread: { refused: 0, clients: 0 } }])
    expect(result.notes.join()).toContain("burst: pessimistic: the log's times have a resolution of 1 s")
  })

  it("says that a window is too long for the log, and that requests had status 429", async () => {
    const hourly = rules("{ name: hourly, field: ip, limit: 2, window: 1 hour }")
    const log = line(ANN, 0) + line(ANN, 60, "GET / HTTP/1.1", 429)
    const { result } = await replay(log, hourly)
    expect(result.rules).toMatchObject([{ tooShort: true, seen: 2 }])
    expect(result.notes.join()).toContain(
      "hourly: log too short: its window of 1 hour is longer than a third",
    )
    expect(result.notes.join()).toContain("1 request had status 429: another limiter refused them")
    const without = await replay(log, hourly, "--without-status", "429")
    expect(without.result.log).toMatchObject({ tooManyRequests: 0, skipped: 1, requests: 1 })
  })

  it("reports clients that suffer from others in a shared counter as bystanders", async () => {
    const whole = rules("{ name: all, limit: 3, window: 1 minute }")
    const log = [0, 1, 2, 3].map((second) => line(ANN, second)).join("") + line(BEN, 4)
    const { result } = await replay(log, whole)
    expect(result.rules).toMatchObject([{ refused: 2, clients: { seen: 2, refused: 2, bystanders: 1 } }])
    expect(result.notes.join()).toContain("all: 1 client of 2 would not exceed the limit alone")
  })

  describe("--against", () => {
    it("shows what is newly refused and no longer refused, by rule and by client", async () => {
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

    it("shows no difference between equal rules", async () => {
      const log = [0, 1, 2, 3].map((second) => line(ANN, second)).join("")
      const { result } = await replay(log, PER_IP, "--against", file("same.yaml", PER_IP))
      expect(result.against).toMatchObject({
        newlyRefused: { requests: 0 },
        noLongerRefused: { requests: 0 },
        clients: [],
      })
    })
  })

  it("replays each rule with each algorithm, and says why one does not fit", async () => {
    const list = rules(
      "{ name: per-ip, field: ip, limit: 2, window: 1 minute }\n{ name: bucket, field: ip, limit: 2, window: 1 minute, algorithm: token-bucket, burst: 9 }",
    )
    const log = [0, 1, 2, 31, 32, 61, 62].map((second) => line(ANN, second)).join("")
    const { result, code } = await replay(log, list, "--algorithm", "token-bucket,fixed-window")
    expect(code).toBe(0)
    expect(result.algorithms).toMatchObject([
      { rule: "per-ip", algorithm: "token-bucket", refused: 3, clients: 1 },
      { rule: "per-ip", algorithm: "fixed-window", refused: 3, clients: 1 },
      { rule: "bucket", algorithm: "token-bucket", refused: 0, clients: 0 },
      { rule: "bucket", algorithm: "fixed-window", problem: expect.stringContaining("burst") },
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
        JSON.stringify({
          time: START_MS + second,
          req: {
            method: "GET",
            url: "/",
            remoteAddress: "10.0.0.1",
            headers: { "x-forwarded-for": `192.0.2.${host}` },
          },
          res: { statusCode: 200 },
          responseTime: 0,
          msg: "request completed",
        }),
      )
      .join("\n")
    expect((await replay(log, PER_IP)).result.log.clients).toBe(1)
    expect((await replay(log, PER_IP, "--trusted-proxies", "1")).result.log.clients).toBe(3)
    expect((await replay(log, PER_IP, "--trusted-proxies", "10.0.0.0/8,loopback")).result.log.clients).toBe(3)
  })

  it("compares its verdicts with those that logFields wrote", async () => {
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

  it("writes the report", async () => {
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
    const text = [...trafficLog({ lines: 3_000, durationMs: 600_000, clients: 50 })].join("")
    const lines = text.trimEnd().split("\n")
    // Lines of one second keep their order, because their times are equal.
    const shuffled = lines
      .map((each, at) => ({ each, at, order: Math.floor(at / 7) % 2 === 0 ? at + 9 : at }))
      .sort((one, other) => one.order - other.order || one.at - other.at)
      .map(({ each }) => each)
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
    ["rules and log from standard input", ["-", "-"], "both the rules and a log are standard input"],
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
    ["an unknown format", ["RULES", "LOG", "--format", "iis"], "iis"],
    ["an invalid proxy", ["RULES", "LOG", "--trusted-proxies", "proxy"], "proxy"],
    ["a reorder time without a unit", ["RULES", "LOG", "--reorder", "10"], "Expected a time"],
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
    const [rulesFile, empty] = [file("rules.yaml", PER_IP), file("empty.log", "")]
    const { code, err } = await sluice(["rules", "replay", rulesFile, empty])
    expect(code).toBe(2)
    expect(err).toContain("error: the logs contain no request")
  })

  it("shows lines that are not in the format, with control characters made visible", async () => {
    const log = `${line(ANN, 0)}${line(ANN, 1)}${line(ANN, 2)}bad \u001b[31mline\n`
    const [rulesFile, logFile] = [file("rules.yaml", PER_IP), file("bad.log", log)]
    const { out, err } = await sluice(["rules", "replay", rulesFile, logFile])
    expect(out).toContain("1 unparsed")
    expect(err).toContain(`${logFile}:4: bad \\u{1b}[31mline`)
  })

  it("asks for the service if the file has rules of several", async () => {
    const several = `service_id: a\n${PER_IP}\n---\nservice_id: b\nrules:\n  - { name: other, field: ip, limit: 1, window: 1 minute }\n`
    const [rulesFile, logFile] = [file("several.yaml", several), file("a.log", line(ANN, 0) + line(ANN, 1))]
    const without = await sluice(["rules", "replay", rulesFile, logFile])
    expect([without.code, without.err]).toEqual([2, expect.stringContaining("--service")])
    const { out } = await sluice(["rules", "replay", rulesFile, logFile, "--service", "b", "--json"])
    expect(JSON.parse(out).rules).toMatchObject([{ name: "other", refused: 1 }])
  })
})
