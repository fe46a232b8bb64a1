import { memoryStore } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { rulesInMemory, tokens } from "@sluice/service"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { type Answered, DOORS, type Door } from "./door-clients.ts"
import { post } from "./post.ts"
import { type Started, startService, useService } from "./started.ts"

const OK = 0
const INVALID_ARGUMENT = 3
const NOT_FOUND = 5
const PERMISSION_DENIED = 7
const FAILED_PRECONDITION = 9
const ABORTED = 10
const UNAUTHENTICATED = 16

const rule = (limit: number, more: object = {}) => ({
  name: "rule",
  rate: { requests_per_unit: limit, unit: "day" },
  ...more,
})

describe.each(DOORS)("registering over %s", (over, open) => {
  let started: Started
  let door: Door
  const clock = manualClock()
  beforeEach(async () => {
    const shared = { store: memoryStore({ clock }), storeTimeoutMs: 20_000, clock }
    started = await startService(rulesInMemory(), { shared })
    door = open(started)
  })
  afterEach(async () => {
    door.close()
    await started.stop()
    expect(started.faults).toEqual([])
  })

  const register = (request: object) => door.call("RegisterService", { service_id: 1, ...request })
  const get = (service_id = 1) => door.call("GetService", { service_id })
  const remove = (request: object) => door.call("RemoveService", { service_id: 1, ...request })
  const ask = async (request: object = {}) =>
    (await door.call("ShouldForwardRequest", { service_id: 1, request: JSON.stringify(request) })).value

  it("makes refusals use the rule's own status, body and media type", async () => {
    const rejection = { status: 503, body: '{"error":"enough"}', content_type: "application/json" }
    expect(await register({ rules: [rule(1, { rejection })] })).toMatchObject({ code: OK })
    await ask()
    expect(await ask()).toMatchObject({ should_forward: false, status_code: 503, body: rejection.body })
    expect(await register({ rules: [rule(1, { rejection: { status: 200 } })], version: 1 })).toMatchObject({
      code: INVALID_ARGUMENT,
    })
  })

  it("keeps the owner of a service, and points refused clients to its link", async () => {
    const metadata = {
      owner: "payments",
      description: "pays",
      contact: "#pay",
      link: "https://example.com/a?b=c",
    }
    expect(await register({ rules: [rule(1)], metadata })).toMatchObject({ code: OK, value: { version: 1 } })
    expect((await get()).value).toMatchObject({ version: 1, metadata })
    await ask()
    expect(await ask()).toMatchObject({
      should_forward: false,
      // The HTTP helper converts names to snake case.
      headers: { [over === "gRPC" ? "Link" : "_link"]: '<https://example.com/a?b=c>; rel="help"' },
    })
    // Registering the same rules again, with or without the metadata, changes nothing.
    expect((await register({ rules: [rule(1)], metadata })).value).toMatchObject({ version: 1 })
    expect((await register({ rules: [rule(1)] })).value).toMatchObject({ version: 1 })
    expect((await register({ rules: [rule(2)], version: 1 })).value).toMatchObject({ version: 2 })
    expect((await get()).value).toMatchObject({ version: 2, metadata })
    const owner = { owner: "search", description: "", contact: "", link: "" }
    expect((await register({ rules: [rule(2)], overwrite: true, metadata: owner })).value).toMatchObject({
      version: 3,
    })
    expect((await get()).value).toMatchObject({ version: 3, metadata: owner })
    expect((await register({ rules: [rule(2)], overwrite: true, metadata: {} })).value).toMatchObject({
      version: 4,
    })
    expect((await get()).value.metadata ?? null).toBeNull()
    const wrong = await register({ rules: [rule(2)], version: 4, metadata: { link: "example.com" } })
    expect(wrong).toMatchObject({
      code: INVALID_ARGUMENT,
      violations: { "metadata.link": expect.any(String) },
    })
  })

  it("counts by calendar months, and lists their rule as registered", async () => {
    const monthly = { name: "rule", limit: 2, per: "month", time_zone: "Europe/Berlin", anchor: "2026-01-31" }
    expect(await register({ rules: [monthly] })).toMatchObject({ code: OK, value: { version: 1 } })
    expect((await get()).value).toMatchObject({ version: 1, rules: [monthly] })
    const same = await register({ rules: [{ ...monthly, algorithm: "" }] })
    expect(same.value).toMatchObject({ version: 1 })
    // In Berlin, the last day of February has begun.
    clock.set(Date.parse("2027-02-27T23:00:00Z"))
    const hours = [0, 0, 0, 30 * 24 + 22, 31 * 24 - 1, 31 * 24 - 1]
    const startMs = clock.now()
    const outcomes: unknown[] = []
    for (const hour of hours) {
      clock.set(startMs + hour * 3_600_000)
      const { should_forward, remaining, retry_after_ms } = await ask()
      outcomes.push([should_forward, Number(remaining ?? 0), Number(retry_after_ms ?? 0) / 3_600_000])
    }
    // Until the 31st of March, summer time begins, so an hour is missing.
    expect(outcomes).toEqual([
      [true, 1, 0],
      [true, 0, 0],
      [false, 0, 31 * 24 - 1],
      [false, 0, 1],
      [true, 1, 0],
      [true, 0, 0],
    ])
    for (const [more, path] of [
      [{ anchor: "32" }, "rules[0].anchor"],
      [{ time_zone: "Berlin" }, "rules[0].time_zone"],
      [{ per: "monthly" }, "rules[0].per"],
      [{ window: "1 day" }, "rules[0].window"],
      [{ limit: undefined, rate: { requests_per_unit: 5, unit: "month" } }, "rules[0].rate.unit"],
    ] as const) {
      const wrong = await register({ rules: [{ ...monthly, ...more }], overwrite: true })
      expect(wrong).toMatchObject({ code: INVALID_ARGUMENT, violations: { [path]: expect.any(String) } })
    }
    if (over === "gRPC") return
    expect(await register({ rules: [{ ...monthly, anchor: 15 }], overwrite: true })).toMatchObject({
      code: OK,
    })
    // The HTTP helper converts numbers in strings.
    expect((await get()).value).toMatchObject({ rules: [{ anchor: 15 }] })
  })

  it("prevents a client of the first contract from replacing a list that it cannot have registered", async () => {
    await register({ rules: [rule(5), rule(9, { name: "second" })] })
    expect(await register({ rule: rule(7) })).toMatchObject({ code: ABORTED })
    expect((await get()).value).toMatchObject({ version: 1, rules: [{ name: "rule" }, { name: "second" }] })
    expect((await register({ rule: rule(7), overwrite: true })).value).toMatchObject({ version: 2 })
  })

  it("replaces the given version, and fails if another version is stored", async () => {
    const ledger: [request: object, code: number, version: number][] = [
      [{ rules: [rule(5)], version: 1 }, ABORTED, 0],
      [{ rules: [rule(5)] }, OK, 1],
      [{ rules: [rule(5)] }, OK, 1],
      [{ rules: [rule(6)] }, ABORTED, 1],
      [{ rules: [rule(6)], version: 0 }, ABORTED, 1],
      [{ rules: [rule(6)], version: 2 }, ABORTED, 1],
      [{ rules: [rule(6)], version: 1 }, OK, 2],
      [{ rules: [rule(6)], version: 1 }, ABORTED, 2],
      [{ rules: [rule(6)], version: 2 }, OK, 3],
      [{ rules: [rule(6)], overwrite: true }, OK, 3],
      [{ rules: [rule(7)], overwrite: true }, OK, 4],
    ]
    for (const [request, code, version] of ledger) {
      const { value, ...answered } = await register(request)
      expect([request, answered.code]).toEqual([request, code])
      if (code === OK) expect(value).toMatchObject({ version })
      expect((await get()).value.version ?? 0).toBe(version)
    }
  })

  it("reports the stored version if the caller sent another version", async () => {
    await register({ rules: [rule(5)] })
    expect((await register({ rules: [rule(6)] })).message).toBe(
      'Service "1" has version 1: read it and send that version, or set overwrite.',
    )
    expect((await register({ service_id: 2, rules: [rule(6)], version: 4 })).message).toBe(
      'Service "2" has no registered rules: register them without a version, or set overwrite.',
    )
  })

  it("puts registered, changed and removed rules in force before it responds", async () => {
    expect(await ask()).toMatchObject({ should_forward: true, policy: "" })
    for (let limit = 1; limit <= 5; limit++) {
      await register({ rules: [rule(limit)], overwrite: true })
      expect(await ask()).toMatchObject({ should_forward: true, limit, remaining: 0, policy: "rule" })
      expect(await ask()).toMatchObject({ should_forward: false, limit })
    }
    await remove({ overwrite: true })
    expect(await ask()).toMatchObject({ should_forward: true, policy: "" })
  })

  it("accepts an empty list of rules, for a known service without limits", async () => {
    expect((await register({})).value).toMatchObject({ version: 1 })
    expect(await get()).toMatchObject({ code: OK, value: { version: 1, rules: [] } })
    expect(await ask()).toMatchObject({ should_forward: true, policy: "" })
    expect(await register({ rules: [rule(5)] })).toMatchObject({ code: ABORTED })
    expect((await register({ rule: rule(5) })).value).toMatchObject({ version: 2 })
  })

  it("removes the given version, and returns whether it existed", async () => {
    await register({ rules: [rule(5)] })
    expect((await remove({})).violations).toEqual({ version: "is missing; give version or overwrite" })
    expect(await remove({ version: 7 })).toMatchObject({ code: ABORTED })
    expect((await get()).code).toBe(OK)
    expect(await remove({ version: 1 })).toMatchObject({ code: OK, value: { removed: true } })
    expect(await remove({ version: 1 })).toMatchObject({ code: OK, value: { removed: false } })
    expect(await get()).toMatchObject({
      code: NOT_FOUND,
      message: expect.stringMatching(/^Service "1" has no rules;/),
    })
  })

  it("keeps services with numbers and names separate", async () => {
    await register({ rules: [rule(5)] })
    await door.call("RegisterService", { service: "checkout", rules: [rule(9)] })
    await door.call("RegisterService", { service: "__proto__", rules: [rule(7)] })
    const limits = []
    for (const request of [{ service: "1" }, { service: "checkout" }, { service: "__proto__" }]) {
      const { value } = await door.call("GetService", request)
      limits.push((value.rules as { rate: { requests_per_unit: number } }[])[0]?.rate.requests_per_unit)
    }
    expect(limits).toEqual([5, 9, 7])
  })

  it("preserves the members of rules", async () => {
    const rules = [
      {
        name: "every",
        fields: ["ip", "user_id"],
        limit: 5_000_000_000,
        window: "15 minutes",
        error_message: "exhausted",
        throttle: { kind: "elastic", ceiling: 6_000_000_000, queue: { max_waiting: 3, max_wait_ms: 50 } },
        match: { methods: ["POST"], path: "/users/:id", fields: { plan: { values: ["free", "trial"] } } },
        shadow: true,
      },
      {
        name: "growing",
        field: "ip",
        rate: { requests_per_unit: 7, unit: "week" },
        penalty: { refusals: 20, for_steps: ["1500 ms", "1 minute", "1 hour"] },
        rejection: { status: 503, body: "<p>Later</p>", content_type: "text/html" },
        allow: ["10.0.0.0/8"],
        overrides: { "192.0.2.8": { limit: 2 }, "198.51.100.0/24": { limit: 70 } },
      },
    ]
    expect(await register({ rules })).toMatchObject({ code: OK })
    expect((await get()).value).toMatchObject({ version: 1, rules, problems: [] })
    // A caller can register the rules again in exactly the form that it has read.
    const again = await register({ rules: (await get()).value.rules as object[] })
    expect(again).toMatchObject({ code: OK, value: { version: 1 } })
  })

  it("refuses text that is not UTF-8 in any field", async () => {
    const half = "a\ud800"
    for (const request of [
      { service_id: 0, service: half, rules: [rule(5)] },
      { rules: [rule(5, { error_message: half })] },
      { rules: [rule(5, { match: { fields: { plan: { values: [half] } } } })] },
    ])
      expect((await register(request)).code).toBe(INVALID_ARGUMENT)
    expect((await get()).code).toBe(NOT_FOUND)
  })

  it("reports each problem under the field names that the rule uses", async () => {
    const { violations } = await register({
      rules: [rule(5, { field: "header:" }), rule(5, { name: "b", fields: ["header:", "ip"] })],
    })
    expect(Object.keys(violations)).toEqual(["rules[0].field", "rules[1].fields[0]"])
  })

  it("refuses more rules than a decision can check", async () => {
    const rules = (count: number) => Array.from({ length: count }, (_each, i) => rule(5, { name: `${i}` }))
    expect((await register({ rules: rules(1_001) })).violations).toEqual({
      rules: "has 1001 rules; at most 1000 are accepted",
    })
    expect(await register({ rules: rules(1_000) })).toMatchObject({ code: OK })
  })

  it("reports all problems together", async () => {
    const { violations, message } = await register({
      rules: [
        rule(0),
        rule(5, { name: "other", field: "ip", fields: ["ip"], error_message: "x".repeat(1025) }),
      ],
    })
    expect(Object.keys(violations).sort()).toEqual([
      "rules[0].rate.requests_per_unit",
      "rules[1].error_message",
      "rules[1].fields",
    ])
    expect(message).toMatch(/ \(and 2 more\)$/)
  })

  it("responds even to a very large number of problems", async () => {
    const rules = Array.from({ length: 1_000 }, (_, index) => ({
      window: "x".repeat(index),
      limit: 0,
    }))
    const { code, message, violations } = await door.call("RegisterService", { service_id: 77, rules })
    expect(code).toBe(3)
    expect(message).toMatch(/ \(and 1999 more\)$/)
    expect(violations).toMatchObject({
      "rules[0].limit": expect.any(String),
      "rules[0].window": expect.any(String),
    })
    const service = "語".repeat(10_000)
    expect(await door.call("GetService", { service })).toMatchObject({ code: 3 })
  })

  it("works while requests are decided, each under the old or the new version", async () => {
    await register({ rules: [rule(1_000)] })
    const asked: Promise<Readonly<Record<string, unknown>>>[] = []
    for (let change = 1; change <= 10; change++) {
      const changing = register({ rules: [rule(1_000 + change)], overwrite: true })
      for (let i = 0; i < 30; i++) asked.push(ask())
      await changing
      expect(await ask()).toMatchObject({ limit: 1_000 + change })
    }
    const limits = (await Promise.all(asked)).map(({ should_forward, limit }) => {
      expect(should_forward).toBe(true)
      return limit as number
    })
    expect(limits.every((limit) => limit >= 1_000 && limit <= 1_010)).toBe(true)
    // Every unit was taken once.
    expect(await ask()).toMatchObject({ remaining: 1_010 - 311 })
  })
})

describe.each(DOORS)("the right to register over %s", (_, open) => {
  const closing: (() => Promise<void> | void)[] = []
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close()
  })
  const start = async (parts: Parameters<typeof startService>[1]): Promise<Door> => {
    const started = await startService(rulesInMemory(), parts)
    const door = open(started)
    closing.push(started.stop, door.close)
    return door
  }
  const calls = async (door: Door, service: string, token?: string): Promise<Answered[]> => [
    await door.call("RegisterService", { service, rules: [rule(5)] }, token),
    await door.call("GetService", { service }, token),
    await door.call("RemoveService", { service, overwrite: true }, token),
  ]

  it.each<[service: string, token: string | undefined, code: number]>([
    ["1", "secret-1", OK],
    ["checkout", "secret-checkout", OK],
    ["1", "secret-of-all", OK],
    ["nobody's", "secret-of-all", OK],
    ["1", undefined, UNAUTHENTICATED],
    ["1", "", UNAUTHENTICATED],
    ["1", "secret-checkout", PERMISSION_DENIED],
    ["1", "secret-", PERMISSION_DENIED],
    ["1", "secret-12", PERMISSION_DENIED],
    ["1", "SECRET-1", PERMISSION_DENIED],
    ["01", "secret-1", PERMISSION_DENIED],
    ["nobody's", "secret-1", PERMISSION_DENIED],
    ["__proto__", "secret-1", PERMISSION_DENIED],
  ])("for service %s with the token %s results in the code %i", async (service, token, code) => {
    const door = await start({
      tokens: tokens({ 1: "secret-1", checkout: "secret-checkout", "*": "secret-of-all" }),
      isRegistrationOpen: true,
    })
    for (const answered of await calls(door, service, token)) {
      expect(answered.code).toBe(code)
      expect(answered.message).not.toContain("secret")
    }
    const asked = await door.call("ShouldForwardRequest", { service })
    expect(asked).toMatchObject({ code: OK, value: { should_forward: true } })
  })

  it("is denied to all callers if there are no tokens and registration is not open", async () => {
    const door = await start({ isRegistrationOpen: false })
    for (const token of [undefined, "any"])
      for (const answered of await calls(door, "1", token)) expect(answered.code).toBe(PERMISSION_DENIED)
  })

  it("is denied to all callers if rules are registered elsewhere", async () => {
    const door = await start({ registry: undefined })
    for (const answered of await calls(door, "1"))
      expect(answered).toMatchObject({
        code: FAILED_PRECONDITION,
        message:
          "Rules cannot be changed or listed here, because they are stored elsewhere, such as in a file. Change them there.",
      })
  })

  it("is required even to learn whether rules are registered", async () => {
    const door = await start({ tokens: tokens({ 1: "secret-1" }) })
    await door.call("RegisterService", { service_id: 1, rules: [rule(5)] }, "secret-1")
    const [there, not] = await Promise.all(
      [1, 2].map((service_id) => door.call("RegisterService", { service_id, rules: [rule(0)], version: 7 })),
    )
    expect(there).toEqual(not)
    expect(there?.code).toBe(UNAUTHENTICATED)
  })
})

describe("a registration that is not valid", () => {
  const started = useService(rulesInMemory())
  let door: Door
  beforeAll(() => {
    const [[, open]] = DOORS as [(typeof DOORS)[number]]
    door = open(started)
  })
  afterAll(() => door.close())

  it.each<[about: string, request: object, field: string, description: string | RegExp]>([
    ["no service", { service_id: 0 }, "service_id", "is missing; give service_id or service"],
    ["a service below 1", { service_id: -1 }, "service_id", "-1 is not a positive whole number"],
    ["two services", { service: "a" }, "service", "is given together with service_id; give only one of them"],
    ["a long service", { service_id: 0, service: "x".repeat(257) }, "service", /at most 256/],
    [
      "rule and rules",
      { rule: rule(5), rules: [rule(5)] },
      "rule",
      "is given together with rules; give only one of them",
    ],
    [
      "two versions",
      { version: 1, overwrite: true },
      "overwrite",
      "is given together with version; give only one of them",
    ],
    ["a version beyond 2^53", { version: "9007199254740993" }, "version", /must be below 2\^53/],
    ["the last version", { version: "9007199254740991" }, "version", /is not a version/],
    ["no rate", { rule: { name: "x" } }, "rule.rate", /^is missing; accepted: a rate such as/],
    [
      "no requests",
      { rule: rule(0) },
      "rule.rate.requests_per_unit",
      /^is missing; accepted: a positive whole/,
    ],
    [
      "no unit",
      { rule: { rate: { requests_per_unit: 5 } } },
      "rule.rate.unit",
      /^is missing; accepted: "second"/,
    ],
    [
      "a limit beyond 2^53",
      { rules: [{ limit: "9007199254740993", window: "1 day" }] },
      "rules[0].limit",
      /^"9007199254740993" is not a limit/,
    ],
    [
      "a wrong field among several",
      { rules: [rule(5, { fields: ["ip", "ip"] })] },
      "rules[0].fields[1]",
      /^"ip" is not/,
    ],
    [
      "a field __proto__",
      { rules: [rule(5, { match: { fields: JSON.parse('{"__proto__":{"values":["a"]}}') } })] },
      "rules[0].match.fields.__proto__",
      /^"__proto__" is not a field/,
    ],
    [
      "an empty value",
      { rules: [rule(5, { match: { fields: { plan: { values: ["a", ""] } } } })] },
      "rules[0].match.fields.plan.values[1]",
      /^"" is not a value/,
    ],
    [
      "no values",
      { rules: [rule(5, { match: { fields: { plan: {} } } })] },
      "rules[0].match.fields.plan",
      /is not a list of values/,
    ],
    ["no kind", { rules: [rule(5, { throttle: {} })] }, "rules[0].throttle.kind", /^is missing/],
    [
      "a number of another throttle kind",
      { rules: [rule(5, { throttle: { kind: "hard", percent: 5 } })] },
      "rules[0].throttle.percent",
      /^"percent" is not a member/,
    ],
    [
      "an invalid percentage",
      { rules: [rule(5, { throttle: { kind: "soft", percent: "NaN" } })] },
      "rules[0].throttle.percent",
      /NaN/,
    ],
    [
      "a long wait",
      { rules: [rule(5, { throttle: { kind: "queue", max_wait_ms: "9007199254740993" } })] },
      "rules[0].throttle.max_wait_ms",
      /^"9007199254740993" is not a wait/,
    ],
    [
      "an override without a limit",
      { rules: [rule(5, { field: "user_id", overrides: { ann: {} } })] },
      "rules[0].overrides.ann.limit",
      /^is missing; accepted: a positive whole number/,
    ],
    [
      "an override beyond 2^53",
      { rules: [rule(5, { field: "user_id", overrides: { limit: { limit: "9007199254740993" } } })] },
      "rules[0].overrides.limit.limit",
      /^"9007199254740993" is not a limit/,
    ],
    [
      "a wrong length of growing blocks",
      { rules: [rule(5, { field: "ip", penalty: { refusals: 3, for_steps: ["1 day", "ages"] } })] },
      "rules[0].penalty.for_steps[1]",
      /^"ages" is not a duration/,
    ],
    [
      "a length and lengths of blocks",
      { rules: [rule(5, { field: "ip", penalty: { refusals: 3, for: "1 day", for_steps: ["1 day"] } })] },
      "rules[0].penalty.for_steps",
      "is given together with for; give only one of them",
    ],
  ])("reports a problem under its field: %s", async (_about, request, field, description) => {
    const answered = await door.call("RegisterService", { service_id: 1, ...request })
    expect(answered.code).toBe(INVALID_ARGUMENT)
    expect(answered.violations).toMatchObject({
      [field]: typeof description === "string" ? description : expect.stringMatching(description),
    })
    expect(answered.message.startsWith(Object.keys(answered.violations)[0] as string)).toBe(true)
    expect((await door.call("GetService", { service_id: 1 })).code).toBe(NOT_FOUND)
  })
})

describe("a registration over HTTP", () => {
  const started = useService(rulesInMemory())

  const send = (method: string, body: unknown, headers = {}) =>
    post(started, `/sluice.v1.RateLimiter/${method}`, body, headers)

  it("reports errors with the fields of the contract, if defined, in addition to Connect's fields", async () => {
    const { status, body } = await send("RegisterService", '{ "serviceId": 1, "rules": [{}] }')
    expect(status).toBe(400)
    expect(body).toMatchObject({
      code: "invalid_argument",
      details: [{ type: "google.rpc.BadRequest" }],
      status: { code: INVALID_ARGUMENT, message: body.message },
      error: body.message,
    })
    expect(await send("RemoveService", '{ "serviceId": 1 }')).toMatchObject({ status: 400 })
    expect((await send("RemoveService", '{ "serviceId": 1 }')).body).not.toHaveProperty("status")
  })

  it.each([
    ["request_per_unit", "rejection_message"],
    ["requestPerUnit", "rejectionMessage"],
    ["requests_per_unit", "request_rejection_message"],
    ["requestsPerUnit", "errorMessage"],
  ])("accepts a rule with %s and %s", async (limit, message) => {
    const rule = { name: "r", field: "id", rate: { [limit]: 3, unit: "day" }, [message]: `says ${message}` }
    for (const [service, body] of Object.entries({ one: { rule }, many: { rules: [rule] } })) {
      expect((await send("RegisterService", { service, ...body, overwrite: true })).status).toBe(200)
      const { body: got } = await send("GetService", { service })
      expect(got.rules).toMatchObject([{ rate: { requestsPerUnit: 3 }, errorMessage: `says ${message}` }])
    }
  })

  it.each([
    { rate: { request_per_unit: 3, requestsPerUnit: 3, unit: "day" } },
    { rate: { requestsPerUnit: 3, unit: "day" }, errorMessage: "a", rejection_message: "a" },
    { rate: [5] },
    5,
  ])("rejects the rule %j", async (rule) => {
    expect((await send("RegisterService", { service: "x", rules: [rule] })).status).toBe(400)
  })

  it.each([
    ["not JSON", "{", "application/json"],
    ["another type", "{}", "text/csv"],
    ["an unknown member", '{ "serviceId": 1, "limits": 5 }', "application/json"],
    ["a member __proto__", '{ "serviceId": 1, "__proto__": {} }', "application/json"],
    ["half a character", String.raw`{ "service": "\ud800" }`, "application/json"],
    ["a fraction", '{ "serviceId": 1, "rule": { "rate": { "requestsPerUnit": 1.5 } } }', "application/json"],
    ["a negative number", '{ "serviceId": 1, "rule": { "limit": -1 } }', "application/json"],
    ["more than 64 bits", '{ "serviceId": 1, "version": "18446744073709551616" }', "application/json"],
  ])("fails with the fields of the contract if the body is %s", async (_, text, type) => {
    const { status, body } = await send("RegisterService", text, { "content-type": type })
    expect([400, 415]).toContain(status)
    expect(body).toMatchObject({
      code: "invalid_argument",
      status: { code: INVALID_ARGUMENT, message: body.message },
      error: body.message,
    })
  })
})
