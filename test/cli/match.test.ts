import { createLimiter, type RequestFacts } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { parseRuleDocument } from "@sluice/rules"
import { Redis } from "ioredis"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parse } from "yaml"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { sluice } from "./in-process.ts"

const RULES = `service_id: checkout
rules:
  - { name: login, field: ip, match: { methods: [POST], path: /login }, rate: { requests_per_unit: 5, unit: minute } }
  - { name: pair, field: [ip, "body:user.email"], limit: 3, window: 15 minutes, cost: 2, penalty: { refusals: 3, for: 1h } }
  - { name: orders, field: ip, match: { path: "/orders/*", methods: [POST] }, limit: 20, window: 1 hour }
  - { name: plans, field: ip, match: { fields: { plan: [free, trial] } }, limit: 20, window: 1 hour }
  - { name: keyed, field: "header:X-Key", on_missing: skip, limit: 20, window: 1 hour }
  - { name: office, field: ip, allow: [192.0.2.0/24], limit: 20, window: 1 hour }
  - { name: user, field: user_id, shadow: true, limit: 20, window: 1 hour }
  - { name: banned, field: ip, deny: [192.0.2.7], limit: 20, window: 1 hour }
  - { name: tenant, field: "header:x-tenant", on_missing: deny, limit: 20, window: 1 hour }
  - { name: all, limit: 1000, window: 1 second }
`
const MONTHLY =
  "{ service_id: checkout, rules: [{ name: monthly, limit: 1000, per: month, time_zone: Europe/Berlin }] }"
const REQUEST = ["--method", "POST", "--path", "/login?x=1", "--ip", "192.0.2.7"]
const MORE = ["--body", "user.email=a@b.c", "--field", "plan=pro"]

const match = (argv: readonly string[], stdin = RULES) => sluice(["rules", "match", "-", ...argv], { stdin })

describe("sluice rules match", () => {
  it("shows the calendar period of a rule", async () => {
    expect((await match(REQUEST, MONTHLY)).out).toContain("cost: 1 of 1000 per month\n")
  })

  it("shows the counters and keys of the rules that apply, and why other rules do not apply", async () => {
    const { code, out, err } = await match([...REQUEST, ...MORE])
    expect(code).toBe(0)
    expect(out.replace(/sl2:\{..\}[\w-]{16}/g, "sl2:…")).toBe(`checkout: 6 of 10 rules for this request
  + login
      counter: ip 192.0.2.7
      cost: 1 of 5 per 1 minute
      key: sl2:…192.0.2.7
  + pair
      counter: ip + body:user.email @9:192.0.2.75:a@b.c
      cost: 2 of 3 per 15 minutes
      key: sl2:…@9:192.0.2.75:a@b.c
      key of blocks: sl2:…@9:192.0.2.75:a@b.c
  - orders
      the path does not match "/orders/*"
  - plans
      plan is "pro", not "free" or "trial"
  - keyed
      header:x-key is missing, and the rule skips such requests
  - office
      ip is "192.0.2.7", which is on the allow list
  + user (shadow: never refuses)
      counter: @ip:192.0.2.7, because user_id is missing
      cost: 1 of 20 per 1 hour
      key: sl2:…@ip:192.0.2.7
  + banned
      refused: on the deny list
      counter: ip 192.0.2.7
      cost: 1 of 20 per 1 hour
      key: sl2:…192.0.2.7
  + tenant
      refused: header:x-tenant is missing
  + all
      counter: the whole service
      cost: 1 of 1000 per 1 second
      key: sl2:…
`)
    expect(err).toBe(
      "note: user_id was looked up in the parameters, query, body and headers; if the app reads it with its option fields, give --field user_id=...\n",
    )
  })

  it("reads every part of a request from its options", async () => {
    const rule = (field: string) => `{ field: "${field}", limit: 1, window: 1m }`
    const stdin = `service_id: a\nrules: [${["method", "route", "header:x-a", "query:q", "body:a.b", "param:p", "cookie:c", "own"].map(rule)}]\n`
    const options = [
      ...["--method", "put", "--route", "/x/:p", "--header", "X-A=h", "--path", "/x?y=1", "--query", "q=2"],
      ...["--body", "a.b=3", "--param", "p=4", "--cookie", "c=5", "--field", "own=6=7", "--cost", "3"],
    ]
    const { out, err } = await match([...options, "--json"], stdin)
    expect(err).toBe("")
    const [{ rules }] = JSON.parse(out).services
    expect(rules.map(({ partition }: { partition: string }) => partition)).toEqual([
      "PUT",
      "/x/:p",
      "h",
      "2",
      "3",
      "4",
      "5",
      "6=7",
    ])
    expect(rules[0]).toMatchObject({ rule: "method-1m", applies: true, cost: 3, mismatches: [] })
    const [{ rules: twice }] = JSON.parse(
      (await match(["--query", "q=1", "--query", "q=2", "--header", "cookie=c=9", "--json"], stdin)).out,
    ).services
    expect(twice[3].partition).toBe("@shared")
    expect(twice[6].partition).toBe("9")
  })

  it("shows how many of each unit a request takes", async () => {
    const stdin = "service_id: a\nrules: [{ name: tpm, limit: 1000, window: 1m, counts: tokens, cost: 2 }]\n"
    expect((await match(["--unit", "bytes=3", "--unit", "tokens=40"], stdin)).out).toContain(
      "cost: 80 of 1000 tokens per 1m",
    )
    const { out } = await match(["--json"], stdin)
    expect(JSON.parse(out).services[0].rules[0]).toMatchObject({ unit: "tokens", cost: 2 })
  })

  it("shows how many permits a request takes", async () => {
    const stdin = "service_id: a\nrules: [{ name: streams, concurrent: 5, hold: 1m, cost: 2 }]\n"
    expect((await match(["--cost", "9"], stdin)).out).toContain("cost: 2 of 5 concurrent-requests\n")
  })

  it("shows the rules of several services, of one service, or of a service that the file does not name", async () => {
    const one = "service_id: a\nrules: { limit: 1, window: 1m }\n"
    const two = `${one}---\nservice_id: b\nrules: []\n`
    expect((await match([], two)).out).toMatch(
      /^a: 1 of 1 rule for(?:.*\n)+b: 0 of 0 rules for this request\n$/,
    )
    expect((await match(["--service", "b"], two)).out).toBe("b: 0 of 0 rules for this request\n")
    const none = "rules: { limit: 1, window: 1m }\n"
    expect(await match([], none)).toMatchObject({ code: 2, err: expect.stringContaining("--service") })
    const key = async (service: string) =>
      (await match(["--service", service], none)).out.match(/key: .*/)?.[0]
    expect(await key("a")).not.toBe(await key("b"))
  })

  it.each([
    [["--ip", "192.0.2"], "Expected an IPv4 or IPv6 address."],
    [["--header", "x"], "Expected a name, =, and a value"],
    [["--cost", "-1"], "Expected a whole number"],
    [["--unit", "=5"], "Expected UNIT=NUMBER"],
    [["--unit", "tokens=many"], "Expected a whole number"],
    [["--prefix", "{a}"], "except { and }"],
    [["--ipv6-prefix", "129"], "from 1 to 128"],
    [["--header", "x=1", "--bdy", "y=1"], "Did you mean --body?"],
  ])("rejects %j", async (argv, message) => {
    expect(await match(argv)).toMatchObject({ code: 2, out: "", err: expect.stringContaining(message) })
  })

  it("shows the problems of invalid rules, as check does", async () => {
    const { code, out, err } = await match(REQUEST, "service_id: a\nrules: { limit: 0, window: 1m }\n")
    expect({ code, out }).toEqual({ code: 1, out: "" })
    expect(err).toContain("standard input:2:10: rules.limit: 0 is not a limit")
  })
})

describe("the keys that sluice rules match shows", () => {
  let server: RedisServer
  let client: Redis
  beforeAll(async () => {
    server = await startRedis()
    client = new Redis(server.port, server.host)
  })
  afterAll(async () => {
    client?.disconnect()
    await server?.stop()
  })

  it("are the keys that a limiter with these rules writes", async () => {
    const rules = RULES.replace(
      "  - { name: banned, field: ip, deny: [192.0.2.7], limit: 20, window: 1 hour }\n",
      "",
    )
      .replace("on_missing: deny, ", "")
      .replace("penalty: { refusals: 3, for: 1h }", "count_rejected: false")
    const limiter = createLimiter<RequestFacts>({
      service: "checkout",
      rules: parseRuleDocument(parse(rules)),
      store: redisStore({ client, prefix: "app:", timeoutMs: 20_000 }),
      storeTimeoutMs: 20_000,
      ipv6Prefix: 48,
      fields: { plan: () => "pro" },
      logger: { warn() {}, error() {} },
    })
    const decision = await limiter.decide({
      method: "POST",
      url: "/login?x=1",
      remoteAddress: "2001:db8:7:8::9",
      body: { user: { email: "zoë@example.com" } },
      headers: {},
    })
    await limiter.close()
    expect(decision).toMatchObject({ allowed: true, degraded: false })
    const { out } = await match(
      [
        ...["--method", "POST", "--path", "/login", "--ip", "2001:db8:7:8::9", "--ipv6-prefix", "48"],
        ...["--prefix", "app:", "--body", "user.email=zoë@example.com", "--field", "plan=pro", "--json"],
      ],
      rules,
    )
    const [{ rules: shown }] = JSON.parse(out).services
    const keys = shown.flatMap(({ key }: { key?: string }) => key ?? [])
    expect(keys).toHaveLength(6)
    expect((await client.keys("*")).sort()).toEqual([...keys].sort())
  })
})
