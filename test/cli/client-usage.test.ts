import { execFile } from "node:child_process"
import { appendFileSync, readFileSync, statSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { gzipSync } from "node:zlib"
import { createLimiter, type Decision, memoryStore, type Rule } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { jsonLinesSink, recordDecisions } from "@sluice/recording"
import { redisStore } from "@sluice/redis"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { storeWithOutages } from "../../packages/core/src/stores/testing/store-with-outages.ts"
import { blocksTestedBy } from "../docs/shown.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { useFolder } from "./folder.ts"
import { sluice } from "./in-process.ts"

const SLUICE = fileURLToPath(new URL("../../packages/cli/bin/sluice.js", import.meta.url))
const DAY_MS = 86_400_000
const RULES: readonly Rule[] = [
  { name: "monthly", field: "header:x-user", limit: 40, per: "month", timeZone: "Europe/Berlin" },
  {
    name: "weekly",
    field: "header:x-user",
    limit: 12,
    per: "week",
    timeZone: "Asia/Tokyo",
    counts: "tokens",
  },
  { name: "all", field: "service", limit: 90, per: "month", anchor: 15, cost: 2, onStoreFailure: "allow" },
  { name: "trial", field: "header:x-user", limit: 9, per: "day", timeZone: "Pacific/Auckland", shadow: true },
  { name: "minute", field: "header:x-user", limit: 20, window: "1 minute" },
]
const { folder, file } = useFolder()
const rules = file("rules.json", JSON.stringify({ service_id: "shop", rules: fileForm(RULES) }))
const redis = await redisForTests()
let files = 0

/** Returns the rules as a file contains them. */
function fileForm(list: readonly Rule[]): readonly object[] {
  return list.map(({ timeZone, onStoreFailure, ...rule }) => ({
    ...rule,
    ...(timeZone !== undefined && { time_zone: timeZone }),
    ...(onStoreFailure !== undefined && { on_store_failure: onStoreFailure }),
  }))
}

/** Opens a limiter, whose decisions are recorded in a new file. `isDown` makes its store fail. */
function open(startMs: number, list: readonly Rule[] = RULES) {
  const clock = manualClock(startMs)
  const state = storeWithOutages(memoryStore({ clock }))
  const limiter = createLimiter({
    ...{ service: "shop", clock, store: state.store, rules: [...list], logger: { warn() {}, error() {} } },
    units: { tokens: 1 },
  })
  const path = file(`decisions-${++files}.jsonl`, "")
  const recorder = recordDecisions(limiter, jsonLinesSink(path), { clock })
  return { clock, limiter, recorder, path, state }
}

const of = (user: string) => ({ headers: { "x-user": user } })

/** Records two months of two clients. Returns the path of the file. */
async function twoMonths(): Promise<string> {
  // February begins in Berlin at 23:00 UTC on 31 January.
  const { clock, limiter, recorder, path } = open(Date.UTC(2024, 0, 31, 22), [RULES[0] as Rule])
  const ada = await limiter.decide(of("ada"), { cost: 30 })
  await limiter.settle(ada, 25)
  await limiter.decide(of("=eve"), { cost: 7 })
  clock.advance(3_600_000)
  await limiter.grant(of("ada"), 10)
  await limiter.decide(of("ada"), { cost: 35 })
  await limiter.decide(of("ada"), { cost: 35 }) // refused
  await recorder.close()
  return path
}

const usage = (...argv: readonly string[]) => sluice(["usage", "--service", "shop", ...argv])

describe("sluice usage", async () => {
  const path = await twoMonths()

  it("lists what each client has used in each period", async () => {
    expect(await usage(path, "--rules", rules)).toEqual({
      code: 0,
      err: "",
      out: [
        "rule     client  from        to          limit  granted  used  left",
        "monthly  '=eve'  2024-01-01  2024-02-01     40        0     7    33",
        "monthly  ada     2024-01-01  2024-02-01     40        0    25    15",
        "monthly  ada     2024-02-01  2024-03-01     50       10    35    15",
        "",
      ].join("\n"),
    })
    const { out } = await usage(path)
    expect(out).toContain("monthly  ada     2023-12-31T23:00Z  2024-01-31T23:00Z     40")
  })

  it("prints the table that the guide shows", async () => {
    const [block] = blocksTestedBy("test/cli/client-usage.test.ts", "docs/production/recording.md", 1)
    const [command = "", ...shown] = (block?.text ?? "").split("\n")
    const records = file("shown.jsonl", readFileSync(path, "utf8").replaceAll("=eve", "bob"))
    const paths: Record<string, string> = { "decisions.jsonl": records, "rules.json": rules }
    const argv = command.split(" ").slice(2)
    const { out } = await sluice(argv.map((word) => paths[word] ?? word))
    expect(out).toBe(shown.join("\n"))
  })

  it("has a help with an example and the exit codes, whose lines fit a terminal", async () => {
    const { code, out } = await sluice(["usage", "--help"])
    expect(code).toBe(0)
    expect(out).toMatch(/\nExample:\n {2}sluice usage .*\n\nExit codes:\n {2}0 {2}/)
    for (const line of out.split("\n")) expect(line.length).toBeLessThanOrEqual(90)
  })

  it("prints CSV, in which a spreadsheet takes no client for a formula", async () => {
    const { out } = await usage(path, "--format", "csv")
    expect(out.split("\r\n")).toEqual([
      "service,rule,client,unit,from,to,limit,granted,used,left,without_store,store_used,store_granted,store_left",
      "shop,monthly,'=eve,requests,2023-12-31T23:00:00Z,2024-01-31T23:00:00Z,40,0,7,33,0,,,",
      "shop,monthly,ada,requests,2023-12-31T23:00:00Z,2024-01-31T23:00:00Z,40,0,25,15,0,,,",
      "shop,monthly,ada,requests,2024-01-31T23:00:00Z,2024-02-29T23:00:00Z,50,10,35,15,0,,,",
      "",
    ])
  })

  it("prints JSON with --format json and with --json", async () => {
    const { out } = await usage(path, "--format", "json", "--to", "2024-01-01T00:00Z")
    const eve = {
      rule: "monthly",
      client: "=eve",
      unit: "requests",
      limit: 40,
      granted: 0,
      used: 7,
      left: 33,
    }
    expect(JSON.parse(out)).toEqual({
      ...{ ok: true, service: "shop", records: 6, duplicates: 0, missing: 0, unreadable: 0 },
      usage: [
        { ...eve, from: "2023-12-31T23:00:00Z", to: "2024-01-31T23:00:00Z", withoutStore: 0 },
        expect.objectContaining({ client: "ada", used: 25, left: 15 }),
      ],
    })
    expect((await usage(path, "--json", "--to", "2024-01-01T00:00Z")).out).toBe(out)
  })

  it.each([
    [["--from", "2024-01-01", "--to", "2024-02-01"], [25]],
    [["--from", "2024-01-31", "--to", "2024-02-01"], [25]],
    [
      ["--from", "2024-01-31", "--to", "2024-02-02"],
      [25, 35],
    ],
    [["--from", "2024-02-01"], [35]],
    [["--from", "2024-03-01"], []],
    [["--to", "2024-02-01"], [25]],
    [["--to", "2024-01-01"], []],
    [
      ["--from", "2024-01-31T22:59:59.999Z"],
      [25, 35],
    ],
    [["--from", "2024-02-01T00:00+01:00"], [35]],
    [["--to", "2024-02-01T00:00:00+01:00"], [25]],
    [["--from", "2024-02-01", "--to", "2024-01-31T23:00:00.001Z"], [35]],
  ])("lists the whole periods that overlap %j in the rule's time zone", async (range, used) => {
    const { out } = await usage(path, "--rules", rules, ...range, "--json")
    const rows: { client: string; used: number }[] = JSON.parse(out).usage
    expect(rows.filter(({ client }) => client === "ada").map((row) => row.used)).toEqual(used)
  })

  it("reads days in UTC without a rules file", async () => {
    const { out } = await usage(path, "--from", "2024-02-01", "--to", "2024-02-02", "--json")
    expect(JSON.parse(out).usage.map((row: { used: number }) => row.used)).toEqual([35])
    const before = await usage(path, "--from", "2024-01-31", "--to", "2024-02-01", "--json")
    expect(JSON.parse(before.out).usage.map((row: { used: number }) => row.used)).toEqual([7, 25, 35])
  })

  it("counts a record once, although it is in several files, which may be compressed and out of order", async () => {
    const lines = readFileSync(path, "utf8").trimEnd().split("\n")
    const later = file("later.jsonl", `${lines.slice(3).join("\n")}\n`)
    const earlier = file("earlier.jsonl.1.gz", gzipSync(`${lines.slice(0, 3).join("\n")}\n`))
    const { out } = await usage(path, "--format", "csv")
    expect(await usage(later, earlier, "--format", "csv")).toEqual({ code: 0, out, err: "" })
    const again = await usage(later, path, earlier, path, "--format", "csv")
    expect(again).toEqual({ code: 0, out, err: "12 records read again, and counted once\n" })
  })

  it("reports a torn line, and reads the record that a restarted process has appended to it", async () => {
    const lines = readFileSync(path, "utf8").trimEnd().split("\n")
    const torn = file(
      "torn.jsonl",
      `${lines[0]?.slice(0, 50)}${lines.join("\n")}\n\n${lines[1]?.slice(0, -1)}`,
    )
    const { out } = await usage(path)
    expect(await usage(torn)).toEqual({
      ...{ code: 0, out },
      err: `warning: 2 lines not a whole record: ${torn}:1, ${torn}:8\n`,
    })
  })

  it("reports missing records and other lines", async () => {
    const lines = readFileSync(path, "utf8").trimEnd().split("\n")
    const others = [
      "ready",
      "null",
      "[]",
      "{}",
      '{"id":"a-1"}',
      lines[0]?.replace('"taken":30', '"taken":"30"'),
    ]
    const gap = file("gap.jsonl", [...others, "x".repeat(70_000), ...lines.toSpliced(2, 2)].join("\n"))
    expect((await usage(gap)).err).toBe(
      `warning: 7 lines not a whole record: ${gap}:1, ${gap}:2, ${gap}:3, ...\n` +
        "warning: 2 records missing between the others, so the sums may be wrong\n",
    )
    const { missing, unreadable } = JSON.parse((await usage(gap, "--json")).out)
    expect([missing, unreadable]).toEqual([2, 7])
  })

  it("needs memory for clients and periods, but not for records", async () => {
    const [, , , , line = ""] = readFileSync(path, "utf8").split("\n")
    const record = JSON.parse(line)
    const many = file("many.jsonl", "")
    for (let first = 0; first < 200_000; first += 10_000) {
      const lines = Array.from(
        { length: 10_000 },
        (_, at) => `${JSON.stringify({ ...record, id: `many-${first + at}` })}\n`,
      )
      appendFileSync(many, lines.join(""))
    }
    expect(statSync(many).size).toBeGreaterThan(60_000_000)
    // The heap has a third of the size of the file.
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [
      ...["--max-old-space-size=20", SLUICE, "usage", "-s", "shop", many, "--json"],
    ])
    expect(stderr).toBe("")
    expect(JSON.parse(stdout)).toMatchObject({
      records: 200_000,
      usage: [{ client: "ada", used: 7_000_000 }],
    })
  })

  it("lists any number of clients", async () => {
    const [, , line = ""] = readFileSync(path, "utf8").split("\n")
    const record = JSON.parse(line)
    const lines = Array.from({ length: 150_000 }, (_, at) => {
      const checks = [{ ...record.checks[0], partition: `client-${at}` }]
      return `${JSON.stringify({ ...record, id: `many-${at}`, checks })}\n`
    })
    const many = file("clients.jsonl", lines.join(""))
    const { code, out } = await usage(many)
    expect([code, out.match(/client-\d/g)?.length]).toEqual([0, 150_000])
  })

  it("leaves the limit empty for a client whose decisions were all made without the store", async () => {
    const { limiter, recorder, path: degraded, state } = open(Date.UTC(2024, 0, 1), [RULES[2] as Rule])
    state.isDown = true
    await limiter.decide(of("ada"), { cost: 3 })
    await recorder.close()
    expect((await usage(degraded)).out).toBe(
      [
        "rule  client        from        to          limit  granted  used  left  without store",
        "all   every client  2023-12-15  2024-01-15               0     6                    6",
        "",
      ].join("\n"),
    )
    expect((await usage(degraded, "--format", "csv")).out).toContain(",,0,6,,6,,,\r\n")
  })

  it("says why there is no usage", async () => {
    expect((await usage(path, "--to", "2000-01-01")).out).toBe(
      "no period overlaps the range from --from to --to\n",
    )
    expect((await sluice(["usage", path, "--service", "bank"])).out).toBe(
      "the files contain no records of the service bank\n",
    )
    const { limiter, recorder, path: other } = open(Date.UTC(2024, 0, 1), [RULES[4] as Rule])
    await limiter.decide(of("ada"))
    await recorder.close()
    expect((await usage(other)).out).toBe("the rules of the service shop have no calendar periods (per)\n")
    expect(await usage(file("empty.jsonl", ""))).toMatchObject({ code: 0, err: "" })
  })

  it("reads standard input", async () => {
    const stdin = readFileSync(path, "utf8")
    const { out } = await usage(path)
    expect(await sluice(["usage", "-", "-s", "shop"], { stdin })).toEqual({ code: 0, out, err: "" })
  })

  it.each([
    [["usage", path], "--service is missing"],
    [["usage", "--service", "shop"], "missing required argument 'files'"],
    [["usage", "-s", "shop", "absent.jsonl"], "absent.jsonl does not exist"],
    [["usage", "-s", "shop", folder], "is a folder"],
    [["usage", "-s", "shop", rules], "is not a recorded decision"],
    [["usage", "-s", "shop", "-", "-"], "standard input is given twice"],
    [["usage", "-s", "shop", path, "--redis", "redis://127.0.0.1:1"], "--redis is only read with --rules"],
    [["usage", "-s", "shop", path, "--from", "2024-02-30"], '--from "2024-02-30" is not a date'],
    [["usage", "-s", "shop", path, "--to", "2024-01-01T25:00Z"], "is not a date"],
    [["usage", "-s", "shop", path, "--to", "yesterday"], "is not a date"],
    [["usage", "-s", "shop", path, "--from", "2024-02-01", "--to", "2024-02-01"], "is not later than"],
    [["usage", "-s", "shop", path, "--format", "xml"], "--format"],
    [["usage", "-s", "bank", path, "--rules", rules], "has no rules for service"],
  ])("refuses %j", async (argv, message) => {
    const { code, out, err } = await sluice(argv)
    expect({ code, out }).toEqual({ code: 2, out: "" })
    expect(err).toContain(message)
  })

  it("ends with 1 if the file has invalid rules", async () => {
    const invalid = file("invalid.json", '{ "service_id": "shop", "rules": [{ "limit": 0 }] }')
    expect(await usage(path, "--rules", invalid)).toMatchObject({ code: 1, out: "" })
  })

  it("goes on with the units of a period whose client got another anchor", async () => {
    const anchors = { ada: 10 }
    const clock = manualClock(Date.UTC(2024, 0, 12))
    const limiter = createLimiter({
      ...{ service: "shop", clock, name: "monthly", field: "header:x-user", limit: 40, per: "month" },
      anchor: () => anchors.ada,
    })
    const anchored = file("anchored.jsonl", "")
    const recorder = recordDecisions(limiter, jsonLinesSink(anchored), { clock })
    await limiter.decide(of("ada"), { cost: 7 })
    for (const day of [8, 5, 1]) {
      anchors.ada = day
      clock.advance(1)
      await limiter.decide(of("ada"), { cost: 2 })
      await limiter.grant(of("ada"), 1)
    }
    const [{ used, granted } = {}] = await limiter.usage(of("ada"))
    await recorder.close()
    const rows = JSON.parse((await usage(anchored, "--json")).out).usage
    expect(rows).toMatchObject([
      { from: "2024-01-01T00:00:00Z", to: "2024-02-01T00:00:00Z", used, granted, limit: 43 },
    ])
    expect([used, granted]).toEqual([13, 3])
  })

  it("lists the units that a process without a recorder has granted, and never takes back more than there were", async () => {
    const clock = manualClock(Date.UTC(2024, 0, 12))
    const store = memoryStore({ clock })
    const options = {
      service: "shop",
      clock,
      name: "monthly",
      field: "header:x-user",
      limit: 40,
      per: "month",
    } as const
    const operator = createLimiter({ ...options, store })
    await operator.grant(of("ada"), 500)
    await operator.close()
    const limiter = createLimiter({ ...options, store })
    const granted = file("granted.jsonl", "")
    const recorder = recordDecisions(limiter, jsonLinesSink(granted), { clock })
    await limiter.decide(of("ada"))
    for (const units of [5, -100, 3]) {
      clock.advance(1)
      await limiter.grant(of("bob"), units)
    }
    await recorder.close()
    expect(JSON.parse((await usage(granted, "--json")).out).usage).toMatchObject([
      { client: "ada", limit: 540, granted: 500, used: 1, left: 539 },
      { client: "bob", granted: 3, used: 0 },
    ])
  })
})

describe("sluice usage with Redis", () => {
  const current = [RULES[0], RULES[2]] as readonly Rule[]

  async function recorded() {
    const limiter = createLimiter({
      ...{
        service: "shop",
        rules: [...current],
        store: redisStore({ client: redis.client }),
        storeTimeoutMs: 10_000,
      },
    })
    const path = file(`decisions-${++files}.jsonl`, "")
    const recorder = recordDecisions(limiter, jsonLinesSink(path))
    return { limiter, recorder, path }
  }

  const env = { REDIS_URL: `redis://127.0.0.1:${redis.server.port}` }

  it("shows what the store has counted in the current period, which records may lack", async () => {
    const { limiter, recorder, path } = await recorded()
    await limiter.decide(of("ada"), { cost: 5 })
    await recorder.close()
    await limiter.decide(of("ada"), { cost: 2 }) // not recorded
    await limiter.grant(of("ada"), 100)
    await limiter.close()
    const { out, code, err } = await sluice(["usage", "-s", "shop", path, "--rules", rules, "--json"], {
      env,
    })
    expect([code, err]).toEqual([0, ""])
    expect(JSON.parse(out).usage).toMatchObject([
      { rule: "all", client: "", used: 10, left: 80, store: { used: 14, granted: 0, left: 76 } },
      { rule: "monthly", client: "ada", used: 5, left: 35, store: { used: 7, granted: 100, left: 133 } },
    ])
    const table = await sluice(["usage", "-s", "shop", path, "--rules", rules], { env })
    expect(table.out).toMatch(/left {2}used in store {2}granted in store\n/)
    expect(table.out).toMatch(/all {6}every client {2}/)
    const csv = await sluice(["usage", "-s", "shop", path, "--rules", rules, "--format", "csv"], { env })
    expect(csv.out).toMatch(/,40,0,5,35,0,7,100,133\r\n/)
  })

  it("leaves out a rule that the file lacks, or that counts otherwise there", async () => {
    const { limiter, recorder, path } = await recorded()
    await limiter.decide(of("bob"))
    await recorder.close()
    await limiter.close()
    const other = [{ name: "all", field: ["ip", "method"], limit: 3, per: "month" }]
    const others = file("others.json", JSON.stringify({ service_id: "shop", rules: other }))
    const { out } = await sluice(["usage", "-s", "shop", path, "--rules", others, "--json"], { env })
    expect(JSON.parse(out).usage.map((row: { store?: object }) => row.store)).toEqual([undefined, undefined])
    const daily = [{ name: "monthly", field: "header:x-user", limit: 3, per: "day" }]
    const file2 = file("daily.json", JSON.stringify({ service_id: "shop", rules: daily }))
    const shown = await sluice(["usage", "-s", "shop", path, "--rules", file2, "--json"], { env })
    expect(JSON.parse(shown.out).usage.map((row: { store?: object }) => row.store)).toEqual([
      undefined,
      undefined,
    ])
  })

  it("ends with 3 if Redis does not respond, but needs no Redis for earlier periods", async () => {
    const { limiter, recorder, path } = await recorded()
    await limiter.decide(of("ada"))
    await recorder.close()
    await limiter.close()
    const gone = { REDIS_URL: "redis://127.0.0.1:1" }
    const argv = ["usage", "-s", "shop", path, "--rules", rules]
    expect(await sluice(argv, { env: gone })).toMatchObject({ code: 3, out: "" })
    expect(await sluice([...argv, "--to", "2024-01-01"], { env: gone })).toMatchObject({ code: 0 })
  })
})

/** Returns the day and time in a zone, by another formatter than the command's. */
function localDate(ms: number, timeZone: string): Date {
  const parts = new Intl.DateTimeFormat("en-US", {
    ...{ timeZone, year: "numeric", month: "numeric", day: "numeric" },
  }).formatToParts(ms)
  const [year = 0, month = 0, day = 0] = ["year", "month", "day"].map((type) =>
    Number(parts.find((part) => part.type === type)?.value),
  )
  return new Date(Date.UTC(year, month - 1, day))
}

/** Names the period of a rule: its first day in the rule's time zone. */
function periodOf({ per, timeZone = "UTC", anchor }: Rule, ms: number): string {
  const date = localDate(ms, timeZone)
  if (per === "week") date.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7))
  else if (per === "month") {
    const first = typeof anchor === "number" ? anchor : 1
    if (date.getUTCDate() < first) date.setUTCMonth(date.getUTCMonth() - 1, first)
    else date.setUTCDate(first)
  }
  return date.toISOString().slice(0, 10)
}

/** An independent count of what clients used, by rule, client and period. */
class Ledger {
  readonly counts = new Map<string, { used: number; granted: number; withoutStore: number }>()

  add(
    rule: Rule,
    client: string,
    ms: number,
    units: number,
    kind: "used" | "granted",
    isDegraded = false,
  ): void {
    const key = [rule.name, rule.field === "service" ? "" : client, periodOf(rule, ms)].join("|")
    const count = this.counts.get(key) ?? { used: 0, granted: 0, withoutStore: 0 }
    count[kind] += units
    if (isDegraded) count.withoutStore += units
    this.counts.set(key, count)
  }

  /** Counts a decision. */
  decided({ allowed, checks, degraded }: Decision, user: string, ms: number): void {
    for (const check of checks) {
      const rule = RULES.find(({ name }) => name === check.policy) as Rule
      if (rule.per !== undefined)
        this.add(rule, user, ms, allowed && check.allowed ? check.cost : 0, "used", degraded)
    }
  }
}

const step = fc.record({
  call: fc.constantFrom("decide", "takeUpTo", "refund", "settle", "grant", "outage", "recovery"),
  user: fc.constantFrom("ada", "bob", "=eve"),
  units: fc.nat(15),
  of: fc.nat(),
  hoursLater: fc.oneof(fc.constant(0), fc.nat(30), fc.nat(500)),
})

it("the sums of sluice usage are those of an independent count of random traffic", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 30, maxLength: 80 }), fc.nat(400), async (steps, day) => {
      const { clock, limiter, recorder, path, state } = open(Date.UTC(2024, 0, 1) + day * DAY_MS)
      const ledger = new Ledger()
      const made: { decision: Decision; user: string; ms: number }[] = []
      for (const { call, user, units, of: which, hoursLater } of steps) {
        const ms = clock.now()
        const earlier = made[which % Math.max(1, made.length)]
        if (call === "outage" || call === "recovery") state.isDown = call === "outage"
        else if (call === "decide" || call === "takeUpTo") {
          const decision =
            call === "decide"
              ? await limiter.decide(of(user), { units: { requests: units, tokens: units % 4 } })
              : await limiter.takeUpTo(of(user), units + 1)
          ledger.decided(decision, user, ms)
          if (decision.allowed) made.push({ decision, user, ms })
        } else if (call === "grant") {
          const done = await limiter.grant(of(user), units + 1).then(
            () => true,
            () => false,
          )
          for (const rule of RULES)
            if (done && rule.per !== undefined && rule.field !== "service")
              ledger.add(rule, user, ms, units + 1, "granted")
        } else if (earlier !== undefined) {
          const { decision } = earlier
          const used = call === "refund" ? 0 : units
          const done = await (call === "refund"
            ? limiter.refund(decision)
            : limiter.settle(decision, units)
          ).then(
            () => true,
            () => false,
          )
          // Only the first call takes effect, also if the store has failed.
          made.splice(made.indexOf(earlier), 1)
          for (const check of done ? decision.checks : []) {
            const rule = RULES.find(({ name }) => name === check.policy) as Rule
            if (rule.per === undefined || !check.allowed) continue
            if (call === "settle" && rule.counts !== undefined) continue
            // Nothing was taken without the store, so nothing is corrected.
            if (decision.degraded && rule.onStoreFailure === "allow") continue
            // Units of an earlier period stay as they were.
            if (periodOf(rule, earlier.ms) !== periodOf(rule, ms)) continue
            const change = used * (rule.cost ?? 1) - check.cost
            ledger.add(rule, earlier.user, ms, change, "used", decision.degraded)
          }
        }
        clock.advance(hoursLater * 3_600_000)
      }
      await recorder.close()
      // A torn last line does not matter.
      appendFileSync(path, '{"id":"')
      const { out, code } = await usage(path, path, "--rules", rules, "--json")
      expect(code).toBe(0)
      const rows: { rule: string; client: string; from: string }[] = JSON.parse(out).usage
      const listed = rows.map(({ rule, client, from, ...counts }) => {
        const first = periodOf(RULES.find(({ name }) => name === rule) as Rule, Date.parse(from))
        return [[rule, client, first].join("|"), counts]
      })
      expect(Object.fromEntries(listed)).toEqual(
        Object.fromEntries([...ledger.counts].map(([key, count]) => [key, expect.objectContaining(count)])),
      )
    }),
    { numRuns: 40 },
  )
})
