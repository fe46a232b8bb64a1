import { liveRules, type RuleSource } from "@sluice/rules"
import { describe, expect, it, onTestFinished } from "vitest"
import { manualClock } from "../ground/manual-clock.ts"
import type { RequestFacts } from "../request/request.ts"
import type { StorableRule } from "../rules/rule.ts"
import { createLimiter } from "./create-limiter.ts"
import type { Limiter } from "./interface/limiter.ts"
import type { LimiterOptions, LimiterSettings } from "./options/options.ts"

type Req = RequestFacts & { readonly user?: unknown }

const RULE = { name: "one", limit: 1_000, window: "1 minute" }
const ADDRESS = { remoteAddress: "192.0.2.1", headers: {} }

/** Creates a limiter, and returns it with its warnings in the form "CODE: message". */
function open(options: Partial<LimiterSettings<Req>>): { limiter: Limiter<Req>; said: string[] } {
  const said: string[] = []
  const tell = ({ code }: { code: string }, message: string): void =>
    void said.push(`${code}: ${message.replace(/ \(@sluice.*/, "")}`)
  const own = options.rules === undefined ? RULE : {}
  const limiter = createLimiter<Req>({
    ...{ clock: manualClock(), logger: { warn: tell, error: tell } },
    ...own,
    ...options,
  } as LimiterOptions<Req>)
  onTestFinished(() => limiter.close())
  return { limiter, said }
}

async function decide(limiter: Limiter<Req>, times: number, request: Req = {}): Promise<void> {
  for (let i = 0; i < times; i++) await limiter.decide({ ...ADDRESS, ...request })
}

const USER = { field: "user", fields: { user: ({ user }: Req) => user as string } }

describe("a rule whose field is missing in each of its first 20 requests", () => {
  it.each([
    ["ip", "Such requests count by their address."],
    ["shared", "Such requests share one counter."],
    ["skip", "Such requests are not limited by it."],
    ["deny", "Such requests are refused."],
  ] as const)("causes one warning, which says what happens with onMissing %s", async (onMissing, effect) => {
    const { limiter, said } = open({ ...USER, onMissing })
    await decide(limiter, 19)
    expect(said).toEqual([])
    await decide(limiter, 30)
    expect(said).toEqual([
      `SLUICE_FIELD_MISSING: Rule "one" counts by "user", which was missing in each of its first 20 requests. ${effect} ` +
        'The function in "fields" returned no value: mount the limiter after the code that sets it, such as ' +
        'authentication. On Fastify, leave out "hook".',
    ])
  })

  it("also causes the warning if keys are hashed", async () => {
    const { limiter, said } = open({ ...USER, hashKeys: true })
    await decide(limiter, 20)
    expect(said).toEqual([expect.stringContaining("SLUICE_FIELD_MISSING")])
    const { limiter: other, said: none } = open({ ...USER, hashKeys: true })
    await decide(other, 1, { user: "ann" })
    await decide(other, 40)
    expect(none).toEqual([])
  })

  it.each([
    ["header:x-api-key", "Check the spelling"],
    ["cookie:session", "Check the spelling"],
    ["query:key", "Check the spelling"],
    ["body:user.id", "Check the spelling"],
    ["param:id", 'Mount the limiter on a route with the parameter "id".'],
    [["header:x-tenant", "ip"], "Check the spelling"],
    [["ip", "param:id"], "Mount the limiter on a route"],
  ])("by %j causes a message with the likely mistake", async (field, remedy) => {
    const { limiter, said } = open({ field })
    await decide(limiter, 21)
    expect(said).toEqual([expect.stringContaining(remedy)])
  })

  it.each([
    ["body.email", "body:email"],
    ["header.x-api-key", "header:x-api-key"],
    ["headers.x-api-key", "header:x-api-key"],
    ["query.x", "query:x"],
    ["params.id", "param:id"],
    ["req.body.email", "body:email"],
  ])(
    "by %s causes a message with the correction %s, at the start and after 20 requests",
    async (field, meant) => {
      const { limiter, said } = open({ field })
      const asks = expect.stringContaining(`Did you mean "${meant}"?`)
      expect(said).toEqual([asks])
      expect(said[0]).toContain("SLUICE_CLIENT_CHOSEN_FIELD")
      await decide(limiter, 21)
      expect(said).toEqual([asks, asks])
      expect(said[1]).toContain("SLUICE_FIELD_MISSING")
    },
  )

  it("causes the message at the start, even if hundreds of rules exist and another field of the rule is known", () => {
    const rules = Array.from({ length: 200 }, (_, i) => ({
      ...{ ...RULE, name: `r${i}`, field: "ip" },
      match: { fields: i === 150 ? { ip: ["192.0.2.1"], plan: ["free"] } : { ip: [`192.0.2.${i}`] } },
    }))
    const { said } = open({ rules } as never)
    expect(said).toEqual([expect.stringContaining('Rule "r150" uses "plan"')])
  })

  it("is counted by itself, among the requests that it applies to", async () => {
    const { limiter, said } = open({
      fields: USER.fields,
      rules: [
        { ...RULE, name: "all", field: "user" },
        { ...RULE, name: "posts", field: "user", match: { methods: ["POST"] } },
      ],
    })
    await decide(limiter, 1, { method: "POST", user: 7 })
    await decide(limiter, 30, { method: "GET" })
    await decide(limiter, 30, { method: "POST" })
    expect(said).toEqual([])
    const { limiter: other, said: heard } = open({
      fields: USER.fields,
      rules: [
        { ...RULE, name: "all", field: "user" },
        { ...RULE, name: "posts", field: "user", match: { methods: ["POST"] } },
      ],
    })
    await decide(other, 20, { method: "POST" })
    expect(heard.map((each) => each.slice(0, 40))).toEqual([
      'SLUICE_FIELD_MISSING: Rule "all" counts ',
      'SLUICE_FIELD_MISSING: Rule "posts" count',
    ])
  })

  it("is counted once for each request, even if a later rule waits for a promise", async () => {
    const fields = { ...USER.fields, tenant: async () => "one" }
    const { limiter, said } = open({
      fields,
      rules: [
        { ...RULE, field: "user" },
        { ...RULE, name: "tenants", field: "tenant" },
      ],
    })
    await decide(limiter, 19)
    expect(said).toEqual([])
    await decide(limiter, 1)
    expect(said).toHaveLength(1)
  })

  it("is noticed if its function returns promises and the same request object is passed repeatedly", async () => {
    const { limiter, said } = open({ ...USER, fields: { user: async () => undefined } })
    for (let i = 0; i < 20; i++) await limiter.decide(ADDRESS)
    expect(said).toHaveLength(1)
  })

  it("causes no second warning and no new count when its rules are loaded again", async () => {
    let change: () => void = () => undefined
    const rule: StorableRule = { ...RULE, field: "user" }
    let rules: readonly StorableRule[] = [rule]
    const source: RuleSource = {
      load: async () => ({ rules, problems: [] }) as never,
      watch(onChange) {
        change = onChange
        return () => undefined
      },
    } as RuleSource
    const { limiter, said } = open({ rules: liveRules(source), onRulesMissing: "deny", fields: USER.fields })
    await limiter.ready()
    await decide(limiter, 10)
    rules = [{ ...rule, limit: 5 }]
    change()
    await limiter.refresh()
    await decide(limiter, 10)
    expect(said).toHaveLength(1)
    rules = [{ ...rule, limit: 6 }]
    await limiter.refresh()
    await decide(limiter, 25)
    expect(said).toHaveLength(1)
  })
})

describe("no warning about a missing field is logged", () => {
  it("if one of the first 20 requests has the field, even a client on the allow list", async () => {
    const { limiter, said } = open({ ...USER, allow: ["root"] })
    await decide(limiter, 19)
    await decide(limiter, 1, { user: "root" })
    await decide(limiter, 50)
    expect(said).toEqual([])
  })

  it.each(["ip", "service", "method"])("for the field %s", async (field) => {
    const { limiter, said } = open({ field })
    await decide(limiter, 25)
    expect(said).toEqual([])
  })

  it("by calls that do not count a request under the rule", async () => {
    const { limiter, said } = open(USER)
    for (let i = 0; i < 25; i++) {
      await limiter.reset(ADDRESS)
      await limiter.block(ADDRESS, { for: 1 })
    }
    expect(said).toEqual([])
  })

  it.each([
    ["route", {}, "SLUICE_ROUTE_UNKNOWN"],
    ["body:user", { headers: { "content-length": "5" } }, "SLUICE_BODY_NOT_PARSED"],
    ["ip", { remoteAddress: undefined }, "SLUICE_ADDRESS_UNKNOWN"],
  ])("in addition to the warning about the field %s", async (field, request, code) => {
    const { limiter, said } = open({ field })
    await decide(limiter, 25, request)
    expect(said).toEqual([expect.stringContaining(code)])
  })

  it("in addition to the warning about a function that fails", async () => {
    const fields = { user: ({ user }: Req) => (user as { id: string }).id }
    const { limiter, said } = open({ field: "user", fields })
    await decide(limiter, 25)
    expect(said).toEqual([expect.stringContaining("SLUICE_EXTRACTOR_FAILED")])
  })
})

describe("a function of fields that returns", () => {
  class ObjectId {}
  const missing = "Rules that count by the field treat it as missing."

  it.each([
    ["an object", { id: 7 }, "an object", missing],
    ["a promise of an object", Promise.resolve({ id: 7 }), "an object", missing],
    ["an object without a prototype", Object.create(null), "an object", missing],
    ["a list", ["7"], "a list", missing],
    ["a Date", new Date(0), "an instance of Date", missing],
    ["a database id", new ObjectId(), "an instance of ObjectId", missing],
    ["NaN", Number.NaN, "NaN", missing],
    ["Infinity", Number.POSITIVE_INFINITY, "Infinity", missing],
    ["a symbol", Symbol("secret"), "a symbol", missing],
    ["a function", () => "7", "a function", missing],
    ["a boolean", true, "a boolean", "Rules count by its text."],
    ["a bigint", 7n, "a bigint", "Rules count by its text."],
  ])("%s causes a warning on its first request", async (_what, user, kind, effect) => {
    const { limiter, said } = open(USER)
    await decide(limiter, 2, { user })
    expect(said).toEqual([
      `SLUICE_EXTRACTOR_FAILED: The function of field "user" returned ${kind}; it must return a string or a number, such as an id. ${effect}`,
    ])
  })

  it("true or 7n counts by that text", async () => {
    const { limiter } = open(USER)
    await decide(limiter, 1, { user: 7n })
    expect((await limiter.peek({ ...ADDRESS, user: "7" })).remaining).toBe(999)
    await decide(limiter, 1, { user: true })
    expect((await limiter.peek({ ...ADDRESS, user: "true" })).remaining).toBe(999)
  })

  it.each([["7"], [7], [""], [null], [undefined]])("%j causes no warning immediately", async (user) => {
    const { limiter, said } = open(USER)
    await decide(limiter, 5, { user })
    expect(said).toEqual([])
  })
})
