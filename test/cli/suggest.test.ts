import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { readRuleFile } from "@sluice/rules"
import { beforeAll, describe, expect, it } from "vitest"
import { trafficLog } from "../fixtures/logs/generate.ts"
import { useFolder } from "./folder.ts"
import { type Ran, sluice } from "./in-process.ts"

const { folder } = useFolder()
let log: string
const inFolder = (name: string): string => join(folder, name)

beforeAll(() => {
  log = [...trafficLog({ lines: 20_000, clients: 3_000, seed: 4 })].join("")
  writeFileSync(inFolder("access.log"), log)
})

/** Runs `sluice rules suggest`. */
async function suggest(args: readonly string[], stdin = ""): Promise<Ran> {
  return sluice(["rules", "suggest", ...args], { stdin })
}

/** Runs `sluice rules suggest --json`, and returns its output. */
async function suggestJson(args: readonly string[], stdin = "") {
  return JSON.parse((await suggest([...args, "--json"], stdin)).out)
}

describe("sluice rules suggest", () => {
  it("writes a new file of valid rules, and shows the candidates", async () => {
    const output = inFolder("rules.yaml")
    const { code, out } = await suggest([inFolder("access.log"), "-o", output])
    expect(code).toBe(0)
    expect(out).toMatch(/combined, 20,000 requests, [\d,]+ clients by ip; 0 unparsed, 0 late/)
    expect(out).toContain(`${output}: 6 rules, all of them in shadow mode`)
    const file = await readRuleFile(readFileSync(output, "utf8"), "yaml")
    expect([file.problems, file.warnings]).toEqual([[], []])
    expect(file.documents[0]?.rules.map(({ name, shadow }) => [name, shadow])).toEqual(
      ["per-ip-1s", "per-ip-1m", "per-ip-1h", "post-login-1s", "post-login-1m", "post-login-1h"].map(
        (name) => [name, true],
      ),
    )
  })

  it("does not let a client that guesses passwords determine the limits, even in a small log", async () => {
    const line = (client: string, second: number) =>
      `${client} - - [03/Jun/2025:08:${String(Math.floor(second / 60)).padStart(2, "0")}:${String(second % 60).padStart(2, "0")} +0000] "POST /login HTTP/1.1" 401 5 "-" "-"\n`
    const others = Array.from({ length: 897 }, (_, at) =>
      line(`10.0.${at >> 8}.${at & 255}`, at).repeat(at % 3 === 0 ? 2 : 1),
    )
    const guesser = Array.from({ length: 101 }, (_, at) =>
      line("203.0.113.9", 60 + Math.floor((at * 59) / 101)),
    )
    writeFileSync(inFolder("guesser.log"), others.join("") + guesser.join(""))
    const { groups, notes } = await suggestJson([inFolder("guesser.log"), "--windows", "1m"])
    for (const { clients, windows } of groups) {
      expect(clients.value).toBe(898)
      expect(windows[0]).toMatchObject({ highestPeak: 101, usualPeak: 2, far: 1 })
      const limits = windows[0].candidates.map(({ name, limit }: { name: string; limit: number }) => [
        name,
        limit,
      ])
      expect(limits).toEqual([
        ["careful", 3],
        ["balanced", 2],
        ["tight", 2],
      ])
    }
    expect(notes.join("\n")).toMatch(
      /Too little data: one client is more than 0\.1% of the clients of all \(898\)/,
    )
  })

  it("suggests the same limits for a compressed log, and for a log in two files", async () => {
    const half = log.indexOf("\n", log.length / 2) + 1
    writeFileSync(inFolder("access.log.gz"), gzipSync(log))
    writeFileSync(inFolder("access.log.1"), log.slice(0, half))
    writeFileSync(inFolder("access.log.0"), log.slice(half))
    const groupsOf = async (...names: string[]) => (await suggestJson(names.map(inFolder))).groups
    const groups = await groupsOf("access.log")
    expect(await groupsOf("access.log.gz")).toEqual(groups)
    expect(await groupsOf("access.log.0", "access.log.1")).toEqual(groups)
  })

  it("prints JSON with the rules", async () => {
    expect(await suggestJson([inFolder("access.log"), "--windows", "10s"])).toMatchObject({
      ...{
        ok: true,
        schema: 1,
        by: ["ip"],
        algorithm: "sliding-window",
        sampledOneOf: 1,
        refuseAtMost: 0.001,
      },
      log: { requests: 20_000, resolutionMs: 1_000 },
      rules: [{ name: "per-ip-10s", window: "10 seconds", shadow: true }, { name: "post-login-10s" }],
    })
  })

  it("suggests limits per month of a time zone", async () => {
    const line = (at: string, ip: string) => `${ip} - - [${at} +0000] "GET / HTTP/1.1" 200 2\n`
    // In Berlin, the second request is in February.
    const requests = [
      ...["31/Jan/2024:22:59:00", "31/Jan/2024:23:01:00", "01/Feb/2024:08:00:00", "29/Feb/2024:22:30:00"],
      ...["29/Feb/2024:23:30:00", "10/Mar/2024:12:00:00"],
    ]
    const month = requests.map((at) => line(at, "192.0.2.1")).join("")
    const args = ["-", "--windows", "month", "--time-zone", "Europe/Berlin"]
    const { groups, rules } = await suggestJson(args, month)
    expect(groups[0]?.windows[0]).toMatchObject({ highestPeak: 3, window: { per: "month" } })
    expect(rules).toEqual([
      {
        ...{ name: "per-ip-month", field: "ip" },
        limit: expect.any(Number),
        per: "month",
        ...{ time_zone: "Europe/Berlin", shadow: true },
      },
    ])
    const { out } = await suggest([...args, "-o", "-"], month)
    expect((await readRuleFile(out, "yaml")).problems).toEqual([])
    expect(out).toContain("per month; the highest peak is 3.")
    for (const [more, told] of [
      [["--time-zone", "Berlin"], "--time-zone:"],
      [["--windows", "fortnight"], "or day, week, month or year for calendar periods"],
    ] as const) {
      const { code, err } = await suggest([...args, ...more], month)
      expect([code, err]).toEqual([2, expect.stringContaining(told)])
    }
  })

  it("reads standard input once, so the number of refused requests is unknown", async () => {
    const args = ["-", "--windows", "1m", "--capacity", "1/s"]
    const { out } = await suggest(args, log)
    expect(out).toContain("Refused requests are not known")
    const { groups, capacity } = await suggestJson(args, log)
    expect(groups[0]?.windows[0]?.candidates[0]?.requests).toBeNull()
    expect(capacity.requests).toBeNull()
    expect(capacity.peak).toBeGreaterThan(1)
  })

  it("suggests limits once for each match in a rules file", async () => {
    const api = "limit: 1, window: 1m, field: ip, match: { path: /login, methods: [POST] }"
    writeFileSync(
      inFolder("old.yaml"),
      `rules:\n  - { name: old, ${api} }\n  - { name: older, ${api.replace("window: 1m", "per: month")} }\n`,
    )
    const { groups } = await suggestJson([inFolder("access.log"), "--match-from", inFolder("old.yaml")])
    expect(groups.map(({ name }: { name: string }) => name)).toEqual(["all", "old"])
    writeFileSync(inFolder("bad.yaml"), "rules:\n  - { name: bad }\n")
    expect((await suggest([inFolder("access.log"), "--match-from", inFolder("bad.yaml")])).code).toBe(1)
  })

  it("writes rules to standard output with -o -, and JSON to a file named .json", async () => {
    const { out } = await suggest([inFolder("access.log"), "-o", "-"])
    expect((await readRuleFile(out, "yaml")).problems).toEqual([])
    await suggest([inFolder("access.log"), "-o", inFolder("rules.json")])
    expect((await readRuleFile(readFileSync(inFolder("rules.json"), "utf8"), "json")).problems).toEqual([])
  })

  it("does not overwrite a file, because its limits may be in force", async () => {
    writeFileSync(inFolder("mine.yaml"), "rules: []\n")
    expect(await suggest([inFolder("access.log"), "-o", inFolder("mine.yaml")])).toMatchObject({
      code: 2,
      err: expect.stringContaining("already exists"),
    })
    expect(readFileSync(inFolder("mine.yaml"), "utf8")).toBe("rules: []\n")
  })

  it.each([
    [["--by", "user_id"], "the logs do not have user_id: log it, or read it with --map"],
    [["--by", "service"], "use --capacity"],
    [["--by", "head er:"], "--by head er:"],
    [["--by", "ip,"], "Expected a field"],
    [["--windows", "1m,8d"], "up to 7d"],
    [["--windows", "0s"], "up to 7d"],
    [["--refuse-at-most", "0.1"], "Expected a percentage"],
    [["--refuse-at-most", "100%"], "Expected a percentage"],
    [["-o", "no/where.yaml"], "the folder no does not exist"],
    [["--trusted-proxies", "1"], "the logs lack the header x-forwarded-for or forwarded"],
    [["--capacity", "20000/m", "--algorithm", "sliding-log"], "--capacity: "],
    [["--capacity", "500"], "500/s or 20000/10m"],
    [["--max-clients", "10"], "from 1000"],
    [["--max-clients", "x"], "from 1000"],
    [["--max-clients", "99999999"], "from 1000"],
    [["--refuse-at-most", "100%", "--client-ip-header", "x-real-ip"], "Expected a percentage"],
    [["--algorithm", "token-bucket"], 'try them with "sluice rules replay --algorithm token-bucket"'],
    [["--algorithm", "leaky-bucket"], "depend on its limit"],
    [["--algorithm", "sliding"], "Expected one of sliding-window,"],
  ])("rejects %j", async (args, message) => {
    const { code, err } = await suggest([inFolder("access.log"), ...args])
    expect(err).toContain(message)
    expect(code).toBe(2)
  })

  it("rejects a log without requests", async () => {
    const { code, err } = await suggest(["-"], "")
    expect([code, err]).toEqual([2, expect.stringMatching(/no requests|empty/)])
  })

  it("reads a pipe only once, even if it has a path", async () => {
    const folder = inFolder("pipe")
    execFileSync("mkfifo", [folder])
    const writing = writeFile(folder, log)
    const { groups } = await suggestJson([folder, "--windows", "1m"])
    await writing
    expect(groups[0].windows[0].candidates[0].requests).toBeNull()
  })

  it("warns of unparsed lines, and fails if most lines are unparsed", async () => {
    const { err, code } = await suggest(["-"], `${log}bad line\n`)
    expect([code, err]).toEqual([0, expect.stringContaining("1 line not in the format of its file")])
    const most = await suggest(["-"], `${log.slice(0, log.indexOf("\n") + 1)}bad\nworse\n`)
    expect([most.code, most.err]).toEqual([2, expect.stringContaining("most lines are not in the format")])
  })

  it("hides clients that are counted by a header, and any client with --hash-keys", async () => {
    const lines = Array.from({ length: 400 }, (_, at) =>
      JSON.stringify({
        ts: 1_748_937_600_000 + at,
        key: at % 4 === 0 ? `key-${at}` : "secret-key",
        ip: "192.0.2.7",
      }),
    )
    const map = ["--map", "time=ts", "--map", "header:x-api-key=key", "--map", "ip=ip"]
    const { out } = await suggest(
      ["-", "--by", "header:x-api-key", "--windows", "1m", ...map],
      lines.join("\n"),
    )
    expect(out).toContain("large client: ")
    expect(out).not.toContain("secret-key")
  })

  it("accepts options about addresses, and names the group of a rule without a name after its path", async () => {
    const rules = "limit: 1, window: 1m, field: ip, match: { path: /login }"
    writeFileSync(inFolder("nameless.yaml"), `rules:\n  - { ${rules} }\n`)
    const lines = Array.from({ length: 20 }, (_, at) =>
      JSON.stringify({ ts: 1_748_937_600_000 + at, peer: "10.0.0.1", real: "2001:db8::7", url: "/login" }),
    )
    const map = ["--map", "time=ts", "--map", "header:x-real-ip=real", "--map", "ip=peer", "--map", "url=url"]
    const address = ["--trusted-proxies", "1", "--client-ip-header", "x-real-ip", "--ipv6-prefix", "56"]
    const argv = ["-", "--windows", "1m", ...map, ...address, "--match-from", inFolder("nameless.yaml")]
    const result = await suggestJson(argv, lines.join("\n"))
    expect(result.clients.value).toBe(1)
    expect(result.groups.map(({ name }: { name: string }) => name)).toHaveLength(2)
  })
})
