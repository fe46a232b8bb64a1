import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { InvalidOptionError, InvalidRuleError } from "@sluice/core"
import {
  LogError,
  type Logs,
  type ReadLogOptions,
  type ReplayLogsOptions,
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

/** Resolves with the problems in the InvalidOptionError with which a call rejects. */
async function problemsOf(call: () => unknown): Promise<readonly string[]> {
  try {
    await call()
  } catch (error) {
    if (!(error instanceof InvalidOptionError)) throw error
    return error.problems.map(({ path, message, accepted }) => `${path}: ${message} (${accepted})`)
  }
  return []
}

describe("readLogs", () => {
  it.each<[object, string]>([
    [{ format: 5 }, "format: 5 is not valid (a string)"],
    [{ map: new Map() }, "map: an instance of Map is not valid (an object whose values are strings)"],
    [{ map: { ip: null } }, 'map: {"ip":null} is not valid (an object whose values are strings)'],
    [{ reorderMs: -1 }, "reorderMs: -1 is not valid (0 or a positive number of milliseconds)"],
    [{ withoutStatus: 429 }, "withoutStatus: 429 is not valid (an array of numbers from 100 to 599)"],
    [{ withoutStatus: [99] }, "withoutStatus: [99] is not valid (an array of numbers from 100 to 599)"],
    [
      { formt: "combined" },
      'formt: is not an option of readLogs; did you mean "format"? (format, map, reorderMs, withoutStatus)',
    ],
  ])("rejects the options %j", async (options, problem) => {
    expect(await problemsOf(() => readLogs([log], options as ReadLogOptions))).toEqual([problem])
  })

  it("reports the paths and every option in one error", async () => {
    const call = () => readLogs("access.log" as never, { format: 5, map: null } as never)
    expect(await problemsOf(call)).toEqual([
      'paths: "access.log" is not valid (an array of strings)',
      "format: 5 is not valid (a string)",
      "map: null is not valid (an object whose values are strings)",
    ])
  })

  it("still throws LogError for a text that is not a format", () => {
    expect(() => readLogs([log], { format: "odd" })).toThrow(LogError)
  })

  it("rejects with LogError if standard input is missing", async () => {
    const reading = (async () => {
      for await (const _ of readLogs(["-"], {}, null as never));
    })()
    await expect(reading).rejects.toThrow(LogError)
  })
})

describe("replayLogs", () => {
  it("counts the requests that rules would have refused, with defaults for all other options", async () => {
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
  ])("takes the bound %j as a number or a string", async (maxRefused, ok) => {
    expect((await replayLogs(readLogs([log]), { rules: RULES, maxRefused })).ok).toBe(ok)
  })

  it("compares the rules with other rules, and reports refusals of clients that must not be refused", async () => {
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

  it.each<[object, string]>([
    [{ rules: undefined }, "rules: is missing (an array of rules)"],
    [
      { algorithms: ["sliding-log", null] },
      'algorithms: ["sliding-log",null] is not valid (an array of strings)',
    ],
    [{ maxRefused: null }, "maxRefused: null is not valid (a number or a string)"],
    [
      { against: RULES },
      `against: ${JSON.stringify(RULES).slice(0, 59)}… is not valid (an object with name and rules)`,
    ],
    [
      { never: { name: "partners" } },
      'never: {"name":"partners"} is not valid (an object with the strings name and text)',
    ],
    [{ slightly: 0.9 }, "slightly: 0.9 is not valid (a number of 1 or more)"],
    [{ far: "5" }, 'far: "5" is not valid (a number of 1 or more)'],
    [{ hashKeys: 1 }, "hashKeys: 1 is not valid (true or false)"],
  ])("rejects the options %j", async (options, problem) => {
    const given = { rules: RULES, ...options } as ReplayLogsOptions
    expect(await problemsOf(() => replayLogs(readLogs([log]), given))).toEqual([problem])
  })

  it.each([undefined, [], readLogs, { summary: { files: [] } }])(
    "rejects %j instead of logs",
    async (logs) => {
      expect(await problemsOf(() => replayLogs(logs as never, { rules: RULES }))).toEqual([
        expect.stringMatching(
          /^logs: (?:.+ is not valid|is missing) \(the logs that readLogs\(\) returns\)$/,
        ),
      ])
    },
  )

  it("suggests the correct name of a misspelled option", async () => {
    const options = { rules: RULES, maxRefusd: 5 } as ReplayLogsOptions
    expect(await problemsOf(() => replayLogs(readLogs([log]), options))).toEqual([
      expect.stringMatching(/^maxRefusd: is not an option of replayLogs; did you mean "maxRefused"\?/),
    ])
  })

  it.each(["trustedProxies", "clientIpHeader", "ipv6Prefix", "maxKeys"])(
    "rejects a wrong %s with InvalidOptionError",
    async (name) => {
      const options = { rules: RULES, [name]: -1 }
      expect(await problemsOf(() => replayLogs(readLogs([log]), options))).toEqual([
        expect.stringMatching(new RegExp(`^${name}: -1 `)),
      ])
    },
  )

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

  it.each<[object, string]>([
    [{ by: null }, "by: null is not valid (an array of one or more strings)"],
    [{ windows: [] }, "windows: [] is not valid (an array of one or more strings)"],
    [{ algorithm: Symbol("odd") }, "algorithm: odd is not valid (a string)"],
    [{ refuseAtMost: 2 }, "refuseAtMost: 2 is not valid (a number from 0 to 1)"],
    [{ maxClients: 5 }, "maxClients: 5 is not valid (a number from 1000 to 10000000)"],
    [{ matchFrom: null }, "matchFrom: null is not valid (an array of rules)"],
    [{ capacity: 500 }, "capacity: 500 is not valid (a string)"],
  ])("rejects the options %o", async (options, problem) => {
    const suggesting = () => suggestLimits(() => readLogs([log]), options as SuggestOptions)
    expect(await problemsOf(suggesting)).toEqual([problem])
  })

  it("rejects with LogError if an option about addresses is invalid", async () => {
    const options = { trustedProxies: 1, clientIpHeader: 5 } as unknown as SuggestOptions
    await expect(suggestLimits(() => readLogs([log]), options)).rejects.toThrow(LogError)
  })

  it("rejects with InvalidRuleError if a rule of matchFrom is invalid", async () => {
    const circular: { path?: unknown } = {}
    circular.path = circular
    const matchFrom = [{ limit: 5, window: "1 minute", match: circular }] as SuggestOptions["matchFrom"]
    const suggesting = suggestLimits(() => readLogs([log]), { matchFrom })
    await expect(suggesting).rejects.toThrow(InvalidRuleError)
    await expect(suggesting).rejects.toThrow("rules[0].match.path: ")
  })

  it("accepts rules of several services with the same name, and rules without a field", async () => {
    const rule = { name: "login", limit: 5, window: "1 minute" }
    const matchFrom = ["/", "/login"].map((path) => ({ ...rule, match: { path } }))
    const { groups } = await suggestLimits(() => readLogs([log]), { matchFrom })
    expect(groups.map(({ name, requests }) => [name, requests])).toEqual([
      ["all", 5],
      ["login", 5],
    ])
  })

  it.each<[string, unknown, string]>([
    ["a list", [], "open: [] is not valid (a function that returns logs)"],
    ["a class", class {}, "open: a function is not valid (a function that returns logs)"],
    [
      "an async function",
      async () => readLogs([log]),
      "open(): an instance of Promise is not valid (the logs that readLogs() returns)",
    ],
  ])("rejects %s instead of a function that opens logs", async (_name, open, problem) => {
    expect(await problemsOf(() => suggestLimits(open as () => Logs))).toEqual([problem])
  })
})
