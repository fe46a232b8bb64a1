import { readRuleFile, type StorableRule } from "@sluice/rules"
import { describe, expect, it } from "vitest"
import type { LogRecord, LogSummary } from "../reading/log.ts"
import { ClientTable } from "../replay/client-table.ts"
import { ReplayRun } from "../replay/replay-run.ts"
import { ClientDemand, type DemandOptions } from "./demand.ts"
import { Refusals } from "./refusals.ts"
import type { SuggestResult } from "./result.ts"
import { suggestedRules, suggestedRulesFile } from "./rules-file-text.ts"
import { Suggestion } from "./suggestion.ts"
import { suggestLines } from "./text.ts"
import { parseCapacity, parseWindow, type WindowLength } from "./window-length.ts"
import { WINDOW_ALGORITHMS } from "./window-peaks.ts"

const START_MS = Date.UTC(2025, 5, 3, 8)

/** An hour of traffic, and the suggestion by address. Both are created once, because many tests read them. */
const TRAFFIC = traffic()
let ofTraffic: SuggestResult | undefined

function suggestedForTraffic(): SuggestResult {
  ofTraffic ??= suggested(TRAFFIC)
  return ofTraffic
}

/** Returns traffic of an hour: people, three programs, a client that guesses passwords, and logins that fail. */
function traffic(nameOf: (client: number) => Partial<LogRecord> = peer): LogRecord[] {
  const records: Omit<LogRecord, "line">[] = []
  let state = 5
  const random = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  const add = (client: number, atS: number, members: Partial<LogRecord> = {}): void => {
    records.push({
      atMs: START_MS + 1_000 * Math.floor(atS),
      method: "GET",
      url: "/",
      status: 200,
      file: 0,
      ...nameOf(client),
      ...members,
    })
  }
  for (let client = 0; client < 3_000; client++) {
    const visits = 1 + Math.floor(8 * random() ** 3)
    const atS = 3_000 * random()
    for (let i = 0; i < visits; i++) add(client, atS + 200 * random(), { url: i % 3 === 0 ? "/api/x" : "/" })
    if (client % 10 === 0)
      add(client, atS, { method: "POST", url: "/login", status: random() < 0.2 ? 401 : 200 })
  }
  for (let program = 0; program < 3; program++)
    for (let atS = 0; atS < 3_600; atS += 1 + program) add(5_000 + program, atS, { url: "/api/y" })
  for (let i = 0; i < 400; i++) add(6_000, 900 + i / 3, { method: "POST", url: "/login", status: 401 })
  return records
    .sort((one, other) => one.atMs - other.atMs)
    .map((record, at) => ({ ...record, line: at + 1 }))
}

function peer(client: number): Partial<LogRecord> {
  return { remoteAddress: `10.1.${client >> 8}.${client & 255}` }
}

function summaryOf(records: readonly LogRecord[], members: Partial<LogSummary> = {}): LogSummary {
  const lines = records.length
  return {
    files: [{ name: "access.log", format: "combined", lines }],
    ...{
      lines,
      requests: lines,
      unparsed: 0,
      unparsedExamples: [],
      skipped: 0,
      reordered: 0,
      reorderedByMs: 0,
    },
    ...{ late: 0, tooManyRequests: 0, resolutionMs: 1_000, bytes: 0, allBytes: 0 },
    fromMs: records[0]?.atMs,
    toMs: records.at(-1)?.atMs,
    ...members,
  }
}

const OPTIONS = {
  by: ["ip"],
  address: {},
  windows: ["1s", "1m", "1h"].map((each) => parseWindow(each) as WindowLength),
  algorithm: "sliding-window",
  groups: [],
  maxClients: 100_000,
  refuseAtMost: 0.001,
} as const satisfies DemandOptions & { refuseAtMost: number }

function suggested(
  records: readonly LogRecord[],
  given: Partial<DemandOptions & { refuseAtMost: number }> = {},
  { summary, hasSecondPass = true }: { summary?: Partial<LogSummary>; hasSecondPass?: boolean } = {},
): SuggestResult {
  const options = { ...OPTIONS, ...given }
  const demand = new ClientDemand(options)
  for (const record of records) demand.offer(record)
  const suggestion = new Suggestion(demand, options)
  const { clients } = demand
  const refusals = new Refusals(suggestion.tried, { ...options, clients, largest: suggestion.largest })
  for (const record of records) refusals.offer(record)
  return suggestion.resultOf(summaryOf(records, summary), hasSecondPass ? refusals : undefined)
}

async function rulesOf(text: string): Promise<readonly StorableRule[]> {
  const file = await readRuleFile(text, "yaml")
  expect([file.problems, file.warnings, file.notes]).toEqual([[], [], []])
  expect(file.documents).toHaveLength(1)
  return file.documents[0]?.rules ?? []
}

/** Returns the comment above each rule, by name of the rule. */
function commentsOf(text: string): Map<string, string> {
  const comments = new Map<string, string>()
  let comment = ""
  for (const line of text.split("\n")) {
    const part = /^ {2}#(.*)$/.exec(line)?.[1]
    if (part !== undefined) comment += ` ${part.trim()}`
    const name = /^ {2}- \{ name: ([^ ,]+),/.exec(line)?.[1]
    if (name === undefined) continue
    comments.set(name, comment)
    comment = ""
  }
  return comments
}

const EFFECT = /([\d,]+) per \S+ would have refused ([\d,]+) clients? \(\S+\) and ([\d,]+) requests?/g
const number = (text: string | undefined): number => Number(text?.replaceAll(",", ""))

/**
 * Returns the refusals of a replay of the rules, each with another limit, by name of the rule: `[clients, requests]`
 * by rule.
 */
function replayed(rules: readonly StorableRule[], records: readonly LogRecord[]): Map<string, number[]> {
  const run = new ReplayRun(rules, {
    service: "default",
    address: {},
    thresholds: { slightly: 1.5, far: 5 },
    maxKeys: 100_000,
    clients: new ClientTable(),
  })
  for (const record of records) run.offer(record)
  return new Map(run.rules.map(({ rule, refused, refusedClients }) => [rule.name, [refusedClients, refused]]))
}

describe("suggestedRulesFile", () => {
  it.each(WINDOW_ALGORITHMS)(
    "writes rules whose replay gives the figures in the comments, with %s",
    async (algorithm) => {
      const records = TRAFFIC
      const groups = [{ name: "api", match: { path: "/api/*" } }]
      const result = suggested(records, { algorithm, groups })
      const text = suggestedRulesFile(result)
      const rules = await rulesOf(text)
      expect(rules.map(({ name }) => name)).toEqual(
        ["per-ip", "api", "post-login"].flatMap((name) => [`${name}-1s`, `${name}-1m`, `${name}-1h`]),
      )
      for (const { shadow } of rules) expect(shadow).toBe(true)
      const comments = commentsOf(text)
      const figures = rules.flatMap((rule) => {
        const found = [...(comments.get(rule.name as string) ?? "").matchAll(EFFECT)]
        expect(found.length).toBeGreaterThanOrEqual(1)
        // The first candidate is the rule.
        expect(number(found[0]?.[1])).toBe(rule.limit)
        return found.map(([, limit, clients, requests]) => ({
          rule: { ...rule, limit: number(limit) } as StorableRule,
          refused: [number(clients), number(requests)],
        }))
      })
      const named = figures.map(({ rule }, at) => ({ ...rule, name: `${rule.name}-${at}` }))
      expect([...replayed(named, records)]).toEqual(
        figures.map(({ refused }, at) => [named[at]?.name, refused]),
      )
      expect(figures.filter(({ refused }) => (refused[1] as number) > 0).length).toBeGreaterThan(5)
    },
  )

  it("states the evidence", () => {
    const text = suggestedRulesFile(suggestedForTraffic())
    expect(text).toContain("# From access.log, 2025-06-03, 59 min 59 s, ")
    expect(text).toContain("3,004 clients by ip; 0 lines unparsed")
    expect(commentsOf(text).get("per-ip-1m")).toMatchInlineSnapshot(
      `" 99.9% of the clients never exceed 7 per minute; the highest peak is 183. 4 clients ask for at least three times as much as all others, so no limit makes room for them. careful: 12 per minute would have refused 4 clients (0.13%) and 4,813 requests (31.4%); the next larger client reaches 21 (1.75x). It is the rule because it leaves room above nearly all clients. Instead, tight: 8 per minute would have refused 4 clients (0.13%) and 5,542 requests (36.2%); the next larger client reaches 21 (2.63x)."`,
    )
    expect(commentsOf(text).get("post-login-1m")).toMatchInlineSnapshot(
      `" POST /login: 700 requests of 301 clients; 463 requests failed, so it looks like a login. 99.7% of the clients never exceed 1 per minute; the highest peak is 183. One client asks for at least three times as much as all others, so no limit makes room for it. careful: 2 per minute would have refused 1 client (0.33%) and 395 requests (56.4%); the next larger client reaches 183 (91.50x). It is the rule because it leaves room above nearly all clients. Instead, tight: 1 per minute would have refused 1 client (0.33%) and 397 requests (56.7%); the next larger client reaches 183 (183.00x)."`,
    )
    for (const line of text.split("\n")) if (/^ *#/.test(line)) expect(line.length).toBeLessThan(120)
  })

  it("writes the rule for a capacity, and states that the capacity does not come from the log", async () => {
    const records = TRAFFIC
    const capacity = parseCapacity("5/s")
    const text = suggestedRulesFile(suggested(records, { capacity }))
    const rule = (await rulesOf(text)).at(-1) as StorableRule
    expect(rule).toMatchObject({
      name: "service-1s",
      field: "service",
      limit: 5,
      window: "1 second",
      shadow: true,
    })
    const comment = commentsOf(text).get("service-1s")
    expect(comment).toContain("A log cannot show what the service can handle.")
    const refused = number(/5 would have refused ([\d,]+) requests/.exec(comment ?? "")?.[1])
    expect(refused).toBeGreaterThan(0)
    expect(replayed([rule], records).get("service-1s")?.[1]).toBe(refused)
  })

  it("writes the rules that suggestedRules returns", async () => {
    const result = suggestedForTraffic()
    expect(suggestedRules(result)).toEqual(await rulesOf(suggestedRulesFile(result)))
  })

  it("writes a file without rules if there are no candidates", async () => {
    const records = traffic((client) => (client >= 0 ? { remoteAddress: "192.0.2.1" } : {}))
    const windows = [parseWindow("1h") as WindowLength]
    const result = suggested(records, { algorithm: "sliding-log", windows })
    expect(result.notes.join(" ")).toContain(
      "all: no limit per hour, because sliding-log cannot count more than 1,000",
    )
    expect(await rulesOf(suggestedRulesFile({ ...result, groups: result.groups.slice(0, 1) }))).toEqual([])
  })

  const HOSTILE = [
    "a\nrules: []",
    "b\r\n- { name: evil }",
    "c\u2028rules: []",
    "d\u0085x",
    "e\u0000\u001b[2J\u202e",
    "f: # {[*&!|>'\"%@`",
    "---",
    "x".repeat(5_000),
  ]

  it("writes names from the log so that they cannot end a comment", async () => {
    const records = traffic((client) => ({ named: { user: HOSTILE[client % HOSTILE.length] as string } }))
    const result = suggested(
      records,
      { by: ["user"] },
      { summary: { files: [{ name: `access\nrules: []\u2028.log`, format: "combined", lines: 1 }] } },
    )
    const text = suggestedRulesFile(result)
    const rules = await rulesOf(text)
    expect(rules.map(({ field }) => field)).toEqual(rules.map(() => "user"))
    expect(text).not.toMatch(/[^\n\P{C}]|[\p{Zl}\p{Zp}]/u)
    for (const line of text.split("\n"))
      expect(line).toMatch(/^(?: *# .*|rules:| {2}- \{ name: [a-z0-9-]+, .* \}|)$/)
    expect(text.length).toBeLessThan(20_000)
  })

  it("does not change the patterns of another rules file", async () => {
    const groups = HOSTILE.map((text) => ({ name: text, match: { fields: { user: [text] } } }))
    const records = traffic((client) => ({ ...peer(client), named: { user: HOSTILE[client % 8] as string } }))
    const result = suggested(records, {
      groups: groups.slice(0, 7),
      windows: [parseWindow("1m") as WindowLength],
    })
    const rules = await rulesOf(suggestedRulesFile(result))
    expect(rules.slice(1, 8).map(({ match }) => match)).toEqual(groups.slice(0, 7).map(({ match }) => match))
    expect(new Set(rules.map(({ name }) => name)).size).toBe(rules.length)
  })
})

describe("the notes of a suggestion", () => {
  const notes = (...given: Parameters<typeof suggested>) => suggested(...given).notes.join("\n")

  it("say what a short log, a NAT and coarse times mean", () => {
    const text = notes(TRAFFIC)
    expect(text).toContain("The log covers 59 min 59 s. Less than three days miss the weekly rhythm")
    expect(text).toContain("Users behind a NAT")
    expect(text).toContain("a resolution of 1 s")
    expect(text).toContain("The window of 1 hour is longer than a third of the log")
    expect(text).toContain("POST /login looks like a login: ")
  })

  it("do not warn about a week of traffic with exact times, counted by user", () => {
    const records = traffic((client) => ({ named: { user: `user ${client}` } }))
    const toMs = START_MS + 7 * 86_400_000
    const text = notes(records, { by: ["user"] }, { summary: { toMs, resolutionMs: 1 } })
    for (const part of ["weekly", "NAT", "resolution", "third of the log", "429", "attack"])
      expect(text).not.toContain(part)
  })

  it("say that a few clients make more than half of the requests, and contain limits without these clients", () => {
    const records = TRAFFIC
    const result = suggested(records)
    expect(result.largest).toEqual({ clients: [], share: 0 })
    expect(result.groups[0]?.windows[0]?.withoutLargest).toBeUndefined()

    const attack = Array.from({ length: 20_000 }, (_, at) => ({
      ...(records[0] as LogRecord),
      remoteAddress: "203.0.113.66",
      atMs: START_MS + 1_000 * Math.floor(at / 6),
    }))
    const all = [...records, ...attack].sort((one, other) => one.atMs - other.atMs)
    const attacked = suggested(all)
    expect(attacked.largest.share).toBeGreaterThan(0.5)
    expect(attacked.largest.clients).toEqual([{ client: "203.0.113.66", requests: 20_000, error: 0 }])
    const note = attacked.notes.find((each) => each.includes("attack"))
    expect(note).toMatch(/^One client makes \d+\.\d% of the [\d,]+ requests\. The log may show an attack\./)
    // Notes are also written to the rules file, so they must not contain names of clients.
    expect(suggestedRulesFile(attacked)).not.toContain("203.0.113.66")
    // Without the attacker, the candidates depend only on the other clients.
    const largest = new Set(attacked.largest.clients.map(({ client }) => client))
    const rest = suggested(all.filter(({ remoteAddress }) => !largest.has(remoteAddress as string)))
    expect(attacked.groups[0]?.windows[1]?.withoutLargest).toEqual(
      rest.groups[0]?.windows[1]?.candidates.map((candidate) => ({ ...candidate, isRule: false })),
    )
    expect(attacked.groups[1]?.windows[1]?.withoutLargest).toBeUndefined()
  })

  it("do not report the largest of a few clients as an attack", () => {
    const few = TRAFFIC.filter((_, at) => at < 50)
    expect(suggested(few).largest).toEqual({ clients: [], share: 0 })
  })

  it("advise users to trust a proxy if most requests come from a private address", () => {
    const records = TRAFFIC
    const proxied = records.map((record, at) =>
      at % 3 > 0 ? { ...record, remoteAddress: "10.0.0.1" } : record,
    )
    expect(notes(proxied)).toContain("It has a private address. If it is a proxy, log the header")
  })

  it("say that requests lack the field, and that the header of proxies is ignored", () => {
    const onlyFields = new Set(["ip", "service", "header:x-forwarded-for"])
    const records = TRAFFIC.map((record, at) => ({
      ...record,
      onlyFields,
      headers: { "x-forwarded-for": at === 9 ? "203.0.113.5" : undefined },
      ...(at < 7 && { remoteAddress: undefined }),
    }))
    expect(notes(records)).toContain("7 requests do not have ip.")
    expect(notes(records)).toContain(
      "which is ignored. If clients come through proxies, give --trusted-proxies",
    )
  })

  it("say what a single pass and a sample cannot show", () => {
    const text = notes(TRAFFIC, { maxClients: 1_000 }, { hasSecondPass: false })
    expect(text).toContain("standard input can be read only once")
    expect(text).toMatch(
      /There are about [\d,]+ clients \(± \d+\.\d%\), more than --max-clients. One of 4 clients/,
    )
  })

  it("say that requests were refused before, and that lines came late", () => {
    const text = notes(TRAFFIC, {}, { summary: { tooManyRequests: 7, late: 3 } })
    expect(text).toContain("7 requests had status 429")
    expect(text).toContain("3 lines came too late")
  })
})

describe("suggestLines", () => {
  it("shows the candidates in a table, and leaves the refused requests empty after a single pass", () => {
    const windows = [parseWindow("1m") as WindowLength]
    expect(suggestLines(suggested(TRAFFIC, { windows }))).toMatchInlineSnapshot(`
      [
        {
          "text": "The log shows what clients did without these rules. A refused client may retry, slow down or leave.",
          "tone": "quiet",
        },
        {
          "text": "access.log, 2025-06-03, 59 min 59 s: combined, 15,309 requests, 3,004 clients by ip; 0 unparsed, 0 late",
          "tone": "strong",
        },
        "requests     window    candidate  limit  clients refused  requests refused  next larger client",
        "all          1 minute  careful    12     4 (0.13%)        4,813 (31.4%)     21 (1.75x)          <- rule",
        "all          1 minute  tight      8      4 (0.13%)        5,542 (36.2%)     21 (2.63x)",
        "POST /login  1 minute  careful    2      1 (0.33%)        395 (56.4%)       183 (91.50x)        <- rule",
        "POST /login  1 minute  tight      1      1 (0.33%)        397 (56.7%)       183 (183.00x)",
        {
          "text": "The log covers 59 min 59 s. Less than three days miss the weekly rhythm, and a quiet day suggests limits for quiet days.",
          "tone": "quiet",
        },
        {
          "text": "Users behind a NAT or a company proxy share an address and count as one client.",
          "tone": "quiet",
        },
        {
          "text": "Too little data: one client is more than 0.1% of the clients of POST /login (301). Single clients decide these limits. Read a longer log, or raise --refuse-at-most.",
          "tone": "quiet",
        },
        {
          "text": "POST /login looks like a login: 463 of 700 requests failed.",
          "tone": "quiet",
        },
      ]
    `)
    expect(suggestLines(suggested(TRAFFIC, { windows }, { hasSecondPass: false }))[3]).toMatch(
      /^all +1 minute +careful +12 +4 \(0.13%\) {20,}21 \(1.75x\) +<- rule$/,
    )
  })
})
