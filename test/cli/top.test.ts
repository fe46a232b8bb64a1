import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { stripVTControlCharacters } from "node:util"
import { memoryStore } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { recordActivity } from "@sluice/dashboard"
import { rulesInMemory, tokens } from "@sluice/service"
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest"
import { run } from "../../packages/cli/src/run.ts"
import { topLines } from "../../packages/cli/src/top-table.ts"
import { startHttpServer } from "../servers/http-server.ts"
import { until } from "../servers/until.ts"
import { post } from "../service/post.ts"
import { FORWARD } from "../service/questions.ts"
import { type Started, startService } from "../service/started.ts"
import { sluice } from "./in-process.ts"

const SLUICE = fileURLToPath(new URL("../../packages/cli/bin/sluice.js", import.meta.url))
const HOSTILE = "\u001b[2J\u001b]0;owned\u0007\u202e\nrefused"
const env = { SLUICE_TOKEN: "the-token" }

async function start(): Promise<Started> {
  const home = rulesInMemory()
  await home.registry.register("shop", [
    { name: "per-user", field: "user", limit: 3, window: "1 hour", algorithm: "sliding-log" },
    { name: "trial", field: "user", limit: 2, window: "1 hour", algorithm: "sliding-log", shadow: true },
  ])
  await home.registry.register("idle", [{ name: "all", limit: 1, window: "1 day" }])
  await home.registry.register("odd", [
    { name: "single", field: "user", limit: 1, window: "1 hour", onMissing: "deny" },
    { name: "pair", field: ["user", "plan"], limit: 1, window: "1 hour", onMissing: "skip" },
  ])
  await home.registry.register(
    "many",
    Array.from({ length: 21 }, (_, i) => ({ name: `rule-${i}`, limit: 1, window: "1 day" })),
  )
  const clock = manualClock(1_796_050_000_000)
  const started = await startService(home, {
    shared: { store: memoryStore({ clock }), storeTimeoutMs: 20_000, clock },
    tokens: tokens({ "*": "the-token" }),
    activity: recordActivity([], { clock }),
  })
  const decide = async (user: string, times: number) => {
    for (let i = 0; i < times; i++) await post(started, FORWARD, { service: "shop", request: { user } })
  }
  await decide(HOSTILE, 5)
  clock.advance(60_000)
  await decide("ada", 7)
  await decide("漢字漢字漢字漢字漢字漢字", 4)
  clock.advance(30_000)
  return started
}

let started: Started
beforeAll(async () => {
  started = await start()
})
afterAll(() => started.stop())

const top = (argv: readonly string[], more: object = {}) =>
  sluice(["clients", "top", "--service", "shop", "--url", started.http, ...argv], { env, ...more })

describe("sluice clients top", () => {
  it("lists the rules with their refusals over time, and the clients that they refuse most", async () => {
    const { code, out, err } = await top([])
    expect([code, err]).toEqual([0, ""])
    expect(out.replace(/\d\d:\d\d:\d\d/, "12:00:00")).toBe(
      [
        "shop at 12:00:00, recorded for 90 s",
        "rule            refused, last 5 min             admitted  refused  clients",
        "trial (shadow)  ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▄▁▁▁▁▁█▁▁▁  6         10       3",
        "per-user        ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▄▁▁▁▁▁█▁▁▁  9         7        3",
        "",
        "rule            client                                              refused, 5–10 min  reason         last      retry",
        "trial (shadow)  ada                                                 5                  limit used up  30 s ago  in 60 min",
        "per-user        ada                                                 4                  limit used up  30 s ago  in 60 min",
        "trial (shadow)  '\\u{1b}[2J\\u{1b}]0;owned\\u{7}\\u{202e}\\u{a}refused'  3                  limit used up  90 s ago  in 59 min",
        "per-user        '\\u{1b}[2J\\u{1b}]0;owned\\u{7}\\u{202e}\\u{a}refused'  2                  limit used up  90 s ago  in 59 min",
        "trial (shadow)  漢字漢字漢字漢字漢字漢字                            2                  limit used up  30 s ago  in 60 min",
        "per-user        漢字漢字漢字漢字漢字漢字                            1                  limit used up  30 s ago  in 60 min",
        "",
      ].join("\n"),
    )
  })

  it("lists only the rule that is named, and at most as many clients as the limit", async () => {
    const { out } = await top(["--rule", "per-user", "--limit", "1"])
    expect(out).toContain("ada")
    expect(out).not.toMatch(/trial|漢字/)
    expect(await top(["--rule", "per-usr"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("no rule"),
    })
  })

  it.each([false, true])("escapes control characters of clients, on a terminal: %s", async (isTTY) => {
    const { out } = await top([], { isTTY })
    expect(out).toContain("\\u{1b}[2J\\u{1b}]0;owned\\u{7}\\u{202e}\\u{a}refused")
    expect(stripVTControlCharacters(out)).not.toMatch(/[^\P{C}\n]/u)
    expect(out.includes("\u001b")).toBe(isTTY)
  })

  it.each([40, 60, 80])("fits into a terminal of %d columns", async (columns) => {
    const { out } = await top([], { columns })
    const widths = out.split("\n").map((line) => [...line].length + (line.match(/[漢字]/g)?.length ?? 0))
    expect(Math.max(...widths)).toBeLessThanOrEqual(columns)
    expect(out).toContain("ada")
    // A sparkline that is cut still ends with the latest seconds.
    expect(out).toMatch(/█▁▁▁ /)
  })

  it("fills a terminal that does not know its size with whole lines", async () => {
    expect((await top([], { columns: 0 })).out).toBe((await top([])).out)
  })

  it("shows clients as the other commands take them, and clients without the field in words", async () => {
    const users = ["#1", "a  b", "it's", "@7", "@alice"]
    const asked = [{}, { user: "x".repeat(200) }, ...users.map((user) => ({ user, plan: "pro x" }))]
    for (const request of [...asked, ...asked]) await post(started, FORWARD, { service: "odd", request })
    const clientsOf = async (rule: string) => {
      const { out } = await top(["--service", "odd", "--rule", rule])
      const rows = out.matchAll(/^\w+ +(?<client>\S.*?) {2,}[12] {2,}(?<reason>\w.*?) {2,}/gm)
      return Array.from(rows, ({ groups }) => `${groups?.client} | ${groups?.reason}`).sort()
    }
    const single = await clientsOf("single")
    const others = single.filter((line) => !/^'#[\w-]{22}' \| limit used up$/.test(line))
    expect(others).toHaveLength(single.length - 1)
    const shown = ["'#1'", "'a  b'", "'it'\\''s'", "@7", "@alice"]
    expect(others).toEqual([
      ...shown.map((user) => `${user} | limit used up`),
      "without the field | field missing",
    ])
    expect(await clientsOf("pair")).toEqual(shown.map((user) => `${user} 'pro x' | limit used up`))
    const { out } = await top(["--service", "odd", "--rule", "single"])
    expect(out).toMatch(/^single +without the field +2 +field missing +\S+ s ago +never$/m)
    const read = execFileSync("sh", ["-c", `printf '%s\\n' ${shown.join(" ")}`], { encoding: "utf8" })
    expect(read).toBe(users.map((user) => `${user}\n`).join(""))
  })

  it("does not say how many rules are left out, because the service leaves out some, too", async () => {
    await post(started, FORWARD, { service: "many", request: {} })
    const { out } = await top(["--service", "many"])
    expect(out.match(/^rule-/gm)).toHaveLength(8)
    expect(out).toContain("\nand more rules, which did not refuse more\n")
  })

  it.each([
    ["ada", "ada"],
    ["@ip:192.0.2.7", "192.0.2.7 without the field"],
    ["@@ip:192.0.2.7", "@ip:192.0.2.7"],
    ["@shared", "without the field"],
    ["", "every client"],
    ["@3:pro1:7", "pro 7"],
    ["@7pro", "@7pro"],
  ])("shows the client of the counter %j as %s, and its refusals as a range if unknown", (key, shown) => {
    const seconds = { admitted: [], refused: [1_200], shadowed: [], overLimit: [] }
    const client = { key, refusals: 1_200, error: 84, reason: "quota", lastMs: "0", untilMs: "0" }
    const of = { rule: "per-user", shadow: false }
    const rules = [{ ...of, refusedClients: 300, seconds }]
    const lines = topLines(
      { service: "shop", atMs: "0", sinceMs: "0", rules, refused: [{ ...of, ...client }] },
      200,
    )
    expect(lines.at(-1)).toBe(`per-user  ${shown.padEnd(6)}  1,116–1,200        limit used up  0 s ago  now`)
  })

  it("prints the response of the service as JSON", async () => {
    const { out } = await top(["--json"])
    expect(JSON.parse(out)).toMatchObject({
      ...{ ok: true, service: "shop", rules: [{ rule: "trial" }, { rule: "per-user" }] },
      refused: expect.arrayContaining([
        expect.objectContaining({ key: HOSTILE, rule: "per-user", refusals: 2 }),
      ]),
    })
  })

  it("says how many processes have recorded, and what the list lacks", async () => {
    const answer = {
      atMs: "9000",
      sinceMs: "2000",
      instances: 3,
      missing: "One is late.",
      rules: [],
      refused: [],
    }
    const other = await startHttpServer((_, response) => response.end(JSON.stringify(answer)))
    onTestFinished(() => other.close())
    const { out, err } = await top(["--url", other.url])
    expect([out, err]).toEqual([
      expect.stringMatching(/^shop at \S+, recorded for 7 s by 3 processes\n/),
      "One is late.\n",
    ])
  })

  it("reports that no request was decided", async () => {
    expect((await top(["--service", "idle"])).out).toContain("no rule has decided a request yet")
  })

  it.each([
    [["--limit", "0"], 2, "Expected a whole number from 1 to 256."],
    [["--limit", "257"], 2, "Expected a whole number from 1 to 256."],
    [["--watch", "--json"], 2, "cannot be used with option '--json'"],
    [["--service", ""], 2, "--service is missing: give the name of the service"],
    [["--url", "http://127.0.0.1:1"], 3, "did not respond"],
    [["--watch", "--url", "http://127.0.0.1:1"], 3, "did not respond"],
  ])("explains what is wrong with %j", async (argv, code, says) => {
    const ran = await top(argv)
    expect([ran.code, ran.out + ran.err]).toEqual([code, expect.stringContaining(says)])
  })

  it("explains that the service does not record", async () => {
    const home = rulesInMemory()
    await home.registry.register("shop", [{ name: "all", limit: 1, window: "1 day" }])
    const off = await startService(home)
    const { code, err } = await top(["--url", off.http])
    await off.stop()
    expect([code, err]).toEqual([1, expect.stringContaining("--activity")])
  })
})

describe("sluice clients top --watch", () => {
  /** Watches until the returned function is called, which presses Ctrl+C. */
  function watch(url: string, isTTY: boolean, size: object = { columns: 80, rows: 10 }) {
    let out = ""
    const listeners: (() => void)[] = []
    const write = (text: string) => {
      out += text
    }
    const code = run(["clients", "top", "--watch", "--service", "shop", "--url", url], {
      ...{ stdin: (async function* () {})(), env, stderr: { write } },
      stdout: { isTTY, ...size, write },
      once: (_event, listener) => listeners.push(listener),
    })
    const end = (): Promise<number> => {
      for (const listener of listeners) listener()
      return code
    }
    return { output: () => out, code, end }
  }

  it("draws over the list until Ctrl+C, and says since when it is stale", async () => {
    const other = await start()
    const { output, end } = watch(other.http, true)
    await until("the list is drawn", () => output().includes("ada"))
    // A line is cleared before its text, because a full line would lose its last column afterwards.
    expect(output()).toMatch(/^\S\[H\S\[K/)
    // A frame has fewer lines than the terminal, so that it does not scroll.
    expect(output().match(/\n/g)).toHaveLength(9)
    await other.stop()
    await until("the list is stale", () => output().includes("stale since "))
    const [, , stale = ""] = output().split("\u001b[H")
    expect(stale).toMatch(/^\S*stale since \d\d:\d\d:\d\d: The decision service at [^\n]*…/)
    expect(stale).toContain("ada")
    expect(await end()).toBe(0)
  })

  it("draws the whole list on a terminal that does not know its size", async () => {
    const { output, end } = watch(started.http, true, { columns: 0, rows: 0 })
    await until("the list is drawn", () => output().includes("per-user"))
    expect(output()).toContain("漢字漢字漢字漢字漢字漢字")
    expect(await end()).toBe(0)
  })

  it("leaves the terminal as it is if the first call fails", async () => {
    const { output, code } = watch("http://127.0.0.1:1", true)
    expect([await code, output()]).toEqual([3, expect.stringMatching(/^error: .* did not respond/)])
  })

  it("ends the program with 0 on SIGINT", async () => {
    const argv = [SLUICE, "clients", "top", "--watch", "--service", "shop", "--url", started.http]
    const child = spawn(process.execPath, argv, { env: { ...env, PATH: process.env.PATH ?? "" } })
    await once(child.stdout, "data")
    child.kill("SIGINT")
    expect(await once(child, "close")).toEqual([0, null])
  })

  it("writes one list after another without escape codes into a pipe", async () => {
    const { output, end } = watch(started.http, false)
    await until("two lists are written", () => output().split("shop at").length === 3)
    expect(output()).not.toContain("\u001b")
    expect(await end()).toBe(0)
  })
})
