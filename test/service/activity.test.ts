import { memoryStore } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { recordActivity } from "@sluice/dashboard"
import { rulesInMemory, tokens } from "@sluice/service"
import { describe, expect, it, onTestFinished } from "vitest"
import { type Answered, DOORS_AND_CONNECT } from "./door-clients.ts"
import { startHere } from "./in-process.ts"
import { rulesFile } from "./rules-file.ts"
import { openService } from "./started.ts"

const START_MS = 1_796_050_000_000
const RULES = [
  { name: "per-user", field: "user", limit: 5, window: "1 day", algorithm: "sliding-log" },
  { name: "trial", field: "user", limit: 7, window: "1 day", shadow: true },
]
const TOKENS = { shop: "the-token", other: "another", "*": "of-all" }

type List = readonly Readonly<Record<string, unknown>>[]

describe.each(DOORS_AND_CONNECT)("over %s", (_, open) => {
  async function start(activity = true) {
    const clock = manualClock(START_MS)
    const started = await openService(rulesInMemory(), {
      shared: { store: memoryStore({ clock }), storeTimeoutMs: 20_000, clock },
      tokens: tokens(TOKENS),
      activity: activity ? recordActivity([], { clock }) : undefined,
    })
    const door = open(started)
    onTestFinished(() => door.close())
    const register = (service: string) =>
      door.call("RegisterService", { service, rules: RULES, overwrite: true }, "of-all")
    expect(await register("shop")).toMatchObject({ code: 0 })
    return {
      ...{ clock, register, door },
      list: (request: object = {}, token = "the-token") =>
        door.call("ListClients", { service: "shop", ...request }, token),
      async decide(user: string, times = 1, service = "shop") {
        for (let i = 0; i < times; i++) {
          await door.call("ShouldForwardRequest", { service, request: JSON.stringify({ user }) })
        }
      },
    }
  }

  it("ListClients returns the outcomes of rules, the refused clients, and the last refusals", async () => {
    const { clock, decide, list } = await start()
    await decide("eve", 6)
    clock.advance(60_000)
    await decide("ada", 8)
    const { value } = await list()
    const [perUser = {}, trial] = value.rules as List
    expect(value).toMatchObject({ at_ms: START_MS + 60_000, since_ms: START_MS, instances: 1, missing: "" })
    expect(perUser).toMatchObject({ rule: "per-user", refused_clients: 2, shadow: false })
    const { admitted, refused } = perUser.seconds as Record<string, readonly number[]>
    expect([admitted?.length, admitted?.[0], admitted?.at(-1)]).toEqual([61, 5, 5])
    expect([refused?.length, refused?.[0], refused?.at(-1)]).toEqual([61, 1, 3])
    expect(perUser.five_minutes).toMatchObject({ admitted: [10], refused: [4] })
    expect(trial).toMatchObject({ rule: "trial", shadow: true })
    const ada = {
      ...{ rule: "per-user", key: "ada", client: ["ada"], refusals: 3, error: 0 },
      ...{ reason: "quota", shadow: false },
    }
    const until = { last_ms: START_MS + 60_000, until_ms: START_MS + 60_000 + 86_400_001 }
    expect((value.refused as List).slice(0, 2)).toMatchObject([
      { ...ada, ...until },
      { ...ada, key: "eve", client: ["eve"], refusals: 1, last_ms: START_MS },
    ])
    expect((value.refusals as List).map(({ key }) => key)).toEqual(["ada", "ada", "ada", "eve"])
    expect((value.refusals as List)[0]).toMatchObject({
      ...{ rule: "per-user", client: ["ada"], reason: "quota" },
      ...{ at_ms: START_MS + 60_000, retry_after_ms: 86_400_001 },
      text: expect.stringContaining("per-user refused the request: 5 of 5 units are used"),
    })
  })

  it("ListClients returns only one rule if it is named, and at most as many entries as the limit", async () => {
    const { decide, list } = await start()
    for (let i = 0; i < 21; i++) await decide(`user${i}`, 6)
    const names = async (request: object) => {
      const { value } = await list(request)
      return ["rules", "refused", "refusals"].map((name) => (value[name] as List).length)
    }
    expect(await names({})).toEqual([2, 20, 20])
    expect(await names({ limit: 256 })).toEqual([2, 21, 21])
    expect(await names({ limit: 1 })).toEqual([1, 1, 1])
    expect(await names({ rule: "trial" })).toEqual([1, 0, 0])
    const busiest = async (request: object) => (await list(request)).value.busiest as List
    expect(new Set((await busiest({ limit: 256 })).map(({ rule }) => rule))).toEqual(
      new Set(["per-user", "trial"]),
    )
    expect((await busiest({ rule: "trial" }))[0]).toMatchObject({
      rule: "trial",
      key: expect.stringMatching(/^user\d+$/),
      client: [expect.stringMatching(/^user\d+$/)],
      requests: expect.toSatisfy((requests: number) => requests >= 16 && requests % 16 === 0),
    })
    expect(await busiest({ limit: 1 })).toHaveLength(1)
    expect(await list({ limit: 257 })).toMatchObject({
      code: 3,
      message: expect.stringContaining("limit: is 257; at most 256"),
    })
    expect(await list({ rule: "per-usr" })).toMatchObject({
      code: 5,
      message: expect.stringContaining("no rule"),
    })
    expect(await list({ service: "another" }, "of-all")).toMatchObject({ code: 5 })
  })

  it("ListClients returns empty lists before the first decision, and after the service was removed", async () => {
    const { decide, list, door, register } = await start()
    const empty = { rules: [], refused: [], busiest: [], refusals: [] }
    expect((await list({ rule: "per-user" })).value).toMatchObject(empty)
    await decide("ada", 6)
    await door.call("RemoveService", { service: "shop", overwrite: true }, "the-token")
    await register("shop")
    expect((await list()).value).toMatchObject(empty)
  })

  it("ListClients returns hostile keys unchanged", async () => {
    const { decide, list } = await start()
    const keys = [
      "\u001b[2J\u001b]0;x\u0007",
      "<script>alert(1)</script>",
      "a\nb\u202e",
      "__proto__",
      '"; --',
      "é",
    ]
    for (const key of keys) await decide(key, 6)
    expect(((await list()).value.refused as List).map(({ key }) => key).sort()).toEqual([...keys].sort())
  })

  it("ListClients returns the values of several fields, and none of a hashed or missing one", async () => {
    const { door, list } = await start()
    const rules = [
      { name: "pair", fields: ["user", "plan"], on_missing: "skip", limit: 1, window: "1 day" },
      { name: "one", field: "user", limit: 1, window: "1 day", on_missing: "shared" },
      { name: "all", limit: 1, window: "1 day", shadow: true },
    ]
    await door.call("RegisterService", { service: "shop", rules, overwrite: true }, "of-all")
    const long = "x".repeat(200)
    for (const request of [{ user: "#7", plan: "pro" }, { user: long }, { plan: "free" }]) {
      for (let i = 0; i < 2; i++)
        await door.call("ShouldForwardRequest", { service: "shop", request: JSON.stringify(request) })
    }
    const { value } = await list({ limit: 256 })
    const refused = (value.refused as List).map(({ rule, key, client }) => [rule, key, client])
    expect(refused).toEqual(
      expect.arrayContaining([
        ["pair", "@2:#73:pro", ["#7", "pro"]],
        ["one", "##7", ["#7"]],
        ["one", expect.stringMatching(/^#[^#]/), []],
        ["one", "@shared", []],
        ["all", "", []],
      ]),
    )
  })

  it("only the token that registers the rules of a service lists its clients", async () => {
    const { decide, list, register, door } = await start()
    await register("other")
    await decide("ada", 6)
    await decide("eve", 7, "other")
    expect((await list({}, "another")).code).toBe(7)
    expect((await list({}, "unknown")).code).toBe(7)
    const overview = async (token: string | undefined, limit = 0): Promise<Answered> =>
      door.call("Overview", { limit }, token)
    expect((await overview(undefined)).code).toBe(16)
    expect((await overview("unknown")).code).toBe(7)
    const services = async (...given: Parameters<typeof overview>) =>
      ((await overview(...given)).value.services as List).map(({ service }) => service)
    expect(await services("the-token")).toEqual(["shop"])
    expect(await services("of-all")).toEqual(["other", "shop"])
    expect(await services("of-all", 1)).toEqual(["other"])
    expect((await overview("of-all", 257)).code).toBe(3)
  })

  it("Overview sums the outcomes of all rules of a service", async () => {
    const { clock, decide, door } = await start()
    await decide("ada", 7)
    const sums = async () => ((await door.call("Overview", {}, "the-token")).value.services as List)[0]
    // Both rules count a request that both admit, and a refused request takes nothing of the shadow rule.
    const counted = { admitted: 12, refused: 2, shadowed: 0, over_limit: 0, degraded: 0 }
    const sum = { service: "shop", instances: 1, since_ms: START_MS, seconds: counted, day: counted }
    expect(await sums()).toEqual(sum)
    clock.advance(300_000)
    expect((await door.call("Overview", {}, "the-token")).value.at_ms).toBe(START_MS + 300_000)
    expect(await sums()).toMatchObject({ seconds: { admitted: 0, refused: 0 }, day: counted })
    clock.advance(86_400_000)
    expect(await sums()).toMatchObject({ day: { admitted: 0, refused: 0 } })
  })

  it("both calls fail and name the setting while nothing is recorded", async () => {
    const { decide, list, door } = await start(false)
    await decide("ada", 6)
    const off = { code: 9, message: expect.stringContaining("--activity") }
    expect(await list()).toMatchObject(off)
    expect(await door.call("Overview", {}, "the-token")).toMatchObject(off)
    expect((await list({}, "another")).code).toBe(7)
  })
})

it.each([
  ["records nothing by default", [], 400],
  ["records with --activity", ["--activity"], 200],
])("the program %s", async (_what, args, status) => {
  const file = rulesFile("service_id: shop\nrules: { name: all, limit: 1, window: 1 day }\n")
  const program = await startHere([`--rules=${file}`, ...args])
  onTestFinished(async () => void (await program.stop()))
  await program.said("The service is ready.")
  const call = async (method: string) =>
    fetch(`${program.http}/sluice.v1.RateLimiter/${method}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: method === "Overview" ? "{}" : '{"service":"shop"}',
    })
  await call("ShouldForwardRequest")
  for (const method of ["ListClients", "Overview"]) {
    const response = await call(method)
    expect([response.status, await response.text()]).toEqual([
      status,
      expect.stringContaining(status === 200 ? "admitted" : "SLUICE_ACTIVITY"),
    ])
  }
})
