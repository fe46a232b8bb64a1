import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { readRuleFile } from "@sluice/core"
import { Command } from "commander"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { trafficLog } from "../../../../test/fixtures/logs/generate.ts"
import { formatLine } from "../line.ts"
import type { CommandOutcome } from "../outcome.ts"
import { addSuggestCommand } from "../suggest-program.ts"

let folder: string
let log: string
const inFolder = (name: string): string => join(folder, name)

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-suggest-"))
  log = [...trafficLog({ lines: 20_000, clients: 3_000, seed: 4 })].join("")
  writeFileSync(inFolder("access.log"), log)
})

afterAll(() => rmSync(folder, { recursive: true }))

/** Runs `sluice rules suggest` in this process. Rejects as the command does. */
async function suggest(
  args: readonly string[],
  stdin = "",
): Promise<CommandOutcome & { readonly shown: string }> {
  const outcomes: CommandOutcome[] = []
  const rules = new Command("rules")
  const io = {
    stdin: (async function* () {
      yield Buffer.from(stdin)
    })(),
    stdout: { write() {} },
    stderr: { write() {} },
    env: {},
  }
  addSuggestCommand(rules, io, (outcome) => outcomes.push(outcome))
  for (const command of [rules, ...rules.commands]) command.exitOverride().configureOutput({ writeErr() {} })
  await rules.parseAsync(["suggest", ...args], { from: "user" })
  const outcome = outcomes[0] as CommandOutcome
  const { text } = outcome
  const shown = typeof text === "string" ? text : text.map((line) => formatLine(line, false)).join("\n")
  return { ...outcome, shown }
}

describe("sluice rules suggest", () => {
  it("writes a new file of valid rules, and shows the candidates", async () => {
    const output = inFolder("rules.yaml")
    const { exitCode, shown } = await suggest([inFolder("access.log"), "-o", output])
    expect(exitCode).toBe(0)
    expect(shown).toMatch(/combined, 20,000 requests, [\d,]+ clients by ip; 0 unparsed, 0 late/)
    expect(shown).toContain(`${output}: 6 rules, all of them in shadow mode`)
    const file = await readRuleFile(readFileSync(output, "utf8"), "yaml")
    expect([file.problems, file.warnings]).toEqual([[], []])
    expect(file.documents[0]?.rules.map(({ name, shadow }) => [name, shadow])).toEqual(
      ["per-ip-1s", "per-ip-1m", "per-ip-1h", "post-login-1s", "post-login-1m", "post-login-1h"].map(
        (name) => [name, true],
      ),
    )
  })

  it("gives the same result for a compressed log, and in two files", async () => {
    const half = log.indexOf("\n", log.length / 2) + 1
    writeFileSync(inFolder("access.log.gz"), gzipSync(log))
    writeFileSync(inFolder("access.log.1"), log.slice(0, half))
    writeFileSync(inFolder("access.log.0"), log.slice(half))
    const groupsOf = async (...names: string[]) =>
      ((await suggest(names.map(inFolder))).json as { groups: unknown }).groups
    const groups = await groupsOf("access.log")
    expect(await groupsOf("access.log.gz")).toEqual(groups)
    expect(await groupsOf("access.log.0", "access.log.1")).toEqual(groups)
  })

  it("prints JSON with the rules", async () => {
    const { json } = await suggest([inFolder("access.log"), "--windows", "10s", "--json"])
    expect(json).toMatchObject({
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

  it("reads standard input once, so that refused requests are not known", async () => {
    const { shown, json } = await suggest(["-", "--windows", "1m", "--capacity", "1/s"], log)
    expect(shown).toContain("Refused requests are not known")
    const { groups, capacity } = json as {
      groups: { windows: { candidates: { requests: null }[] }[] }[]
      capacity: { requests: null; peak: number }
    }
    expect(groups[0]?.windows[0]?.candidates[0]?.requests).toBeNull()
    expect(capacity.requests).toBeNull()
    expect(capacity.peak).toBeGreaterThan(1)
  })

  it("suggests limits for the matches of a rules file, once for each", async () => {
    const api = "limit: 1, window: 1m, field: ip, match: { path: /login, methods: [POST] }"
    writeFileSync(inFolder("old.yaml"), `rules:\n  - { name: old, ${api} }\n  - { name: older, ${api} }\n`)
    const { json } = await suggest([inFolder("access.log"), "--match-from", inFolder("old.yaml")])
    expect((json as { groups: { name: string }[] }).groups.map(({ name }) => name)).toEqual(["all", "old"])
    writeFileSync(inFolder("bad.yaml"), "rules:\n  - { name: bad }\n")
    expect((await suggest([inFolder("access.log"), "--match-from", inFolder("bad.yaml")])).exitCode).toBe(1)
  })

  it("writes rules to standard output with -o -, and JSON to a file named .json", async () => {
    const { shown } = await suggest([inFolder("access.log"), "-o", "-"])
    expect((await readRuleFile(shown, "yaml")).problems).toEqual([])
    await suggest([inFolder("access.log"), "-o", inFolder("rules.json")])
    expect((await readRuleFile(readFileSync(inFolder("rules.json"), "utf8"), "json")).problems).toEqual([])
  })

  it("does not overwrite a file, which may have limits that are in force", async () => {
    writeFileSync(inFolder("mine.yaml"), "rules: []\n")
    await expect(suggest([inFolder("access.log"), "-o", inFolder("mine.yaml")])).rejects.toThrow(
      "is there already",
    )
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
    [["--refuse-at-most", "101%"], "Expected a percentage"],
    [["--capacity", "500"], "500/s or 20000/10m"],
    [["--max-clients", "10"], "from 1000"],
    [["--algorithm", "token-bucket"], 'try them with "sluice rules replay --algorithm token-bucket"'],
    [["--algorithm", "leaky-bucket"], "depend on its limit"],
    [["--algorithm", "sliding"], "Expected one of sliding-window,"],
  ])("rejects %j", async (args, message) => {
    await expect(suggest([inFolder("access.log"), ...args])).rejects.toThrow(message)
  })

  it("rejects a log without requests", async () => {
    await expect(suggest(["-"], "")).rejects.toThrow(/no requests|empty/)
  })
})
