import { describe, expect, it } from "vitest"
import { manualClock } from "../ground/manual-clock.ts"
import type { RequestFacts } from "../request/request.ts"
import type { Rule } from "../rules/rule.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import { createLimiter } from "./create-limiter.ts"
import type { LimiterOptions } from "./options/options.ts"

const TOKEN = "Bearer sk_live_4eC39HqLyjWDarjtT1zdp7dc"
const REQUEST: RequestFacts = {
  remoteAddress: "192.0.2.7",
  route: "/a",
  headers: {
    authorization: TOKEN,
    "x-api-key": TOKEN,
    "x-user": "ann",
    cookie: `sid=${encodeURIComponent(TOKEN)}; theme=dark`,
  },
  query: { access_token: TOKEN, page: "2" },
  body: { user: { password: TOKEN } },
  params: { token: TOKEN },
}

function limiterWith(rule: Partial<Rule>, options: Partial<LimiterOptions<RequestFacts>> = {}) {
  const clock = manualClock(1_700_000_000_000)
  const rules = [{ name: "r", limit: 3, window: "1 minute", ...rule }] as Rule[]
  return createLimiter({
    service: "shop",
    store: memoryStore({ clock }),
    clock,
    rules,
    ...options,
  } as LimiterOptions<RequestFacts>)
}

async function partitionOf(
  field: string | string[],
  options?: Partial<LimiterOptions<RequestFacts>>,
  request = REQUEST,
) {
  const limiter = limiterWith({ field } as Partial<Rule>, options)
  const [{ counter } = {}] = await limiter.explain(request)
  return counter?.partition
}

const HIDDEN = /^#[\w-]{22}$/

describe("the value of a field is stored as a hash if its name is", () => {
  it.each([
    ...[
      "header:authorization",
      "header:Proxy-Authorization",
      "header:cookie",
      "cookie:sid",
      "cookie:connect.sid",
    ],
    ...["header:x-api-key", "query:api_key", "body:apiKey", "apikey", "query:key", "header:x-functions-key"],
    ...["query:access_token", "body:refreshToken", "param:token", "token", "header:x-amz-security-token"],
    ...["body:user.password", "passwd", "body:client_secret", "session", "sessionId", "header:x-session-id"],
    ...[
      "cookie:appSession",
      "cookie:userSession",
      "body:licenseKey",
      "clientKey",
      "authKey",
      "header:x-userauth",
    ],
    ...["query:sig", "query:X-Amz-Signature", "header:x-auth", "jwt", "body:otp", "query:PHPSESSID"],
  ])("%s", async (field) => {
    const name = field.slice(field.indexOf(":") + 1)
    const nested = name.split(".").reduceRight<unknown>((value, key) => ({ [key]: value }), TOKEN)
    const lower = { [name.toLowerCase()]: TOKEN }
    const request = {
      headers: name === "cookie" || !field.startsWith("cookie:") ? lower : {},
      cookies: { [name]: TOKEN },
      query: { [name]: TOKEN },
      body: nested,
      params: { [name]: TOKEN },
    } as RequestFacts
    expect(await partitionOf(field, {}, request)).toMatch(HIDDEN)
  })
})

it.each([
  ["ip", "192.0.2.7"],
  ["route", "/a"],
  ["header:x-user", "ann"],
  ["query:page", "2"],
  ["cookie:theme", "dark"],
])("the value of %s stays readable by default", async (field, partition) => {
  expect(await partitionOf(field)).toBe(partition)
})

it.each(["author", "monkey", "keyboard", "side", "spinner", "tenant", "user_id", "plan"])(
  "the value of a field with the name %s stays readable by default",
  async (field) => {
    expect(await partitionOf(field, { fields: { [field]: () => "ann" } })).toBe("ann")
  },
)

it("a secret in a combination is hidden, and so is the secret of an own field", async () => {
  expect(await partitionOf(["route", "header:authorization"])).toMatch(HIDDEN)
  expect(await partitionOf("apiKey", { fields: { apiKey: () => TOKEN } })).toMatch(HIDDEN)
})

it("different values have different hashes, and equal values have equal hashes in every process and rule", async () => {
  const of = (authorization: string, options?: Partial<LimiterOptions<RequestFacts>>) =>
    partitionOf("header:authorization", options, { headers: { authorization } })
  const texts = ["a", "b", "A", "\ud800", "\udbff", "#a", "@a", "x".repeat(200), "x".repeat(201)]
  const hashes = await Promise.all(texts.map((text) => of(text)))
  expect(new Set(hashes).size).toBe(texts.length)
  expect(await of("a")).toBe(hashes[0])
  expect(await of("a", { service: "other" })).not.toBe(hashes[0])
  const secret = await of("a", { hashSecret: "one" })
  expect(secret).toMatch(HIDDEN)
  expect(new Set([hashes[0], secret, await of("a", { hashSecret: "two" })]).size).toBe(3)
})

it("a client cannot send the hash of another client", async () => {
  const hash = (await partitionOf("header:authorization")) as string
  expect(await partitionOf("header:x-user", {}, { headers: { "x-user": hash } })).toBe(`#${hash}`)
})

it("hashKeys: true hides the values of all fields, and false hides none", async () => {
  for (const field of ["ip", "header:x-user", "header:authorization"]) {
    expect(await partitionOf(field, { hashKeys: true })).toMatch(HIDDEN)
    expect(await partitionOf(field, { hashKeys: false })).not.toMatch(HIDDEN)
  }
  expect(await partitionOf(["ip", "route"], { hashKeys: true })).toMatch(HIDDEN)
  expect(await partitionOf("service", { hashKeys: true })).toBe("")
})

it("requests without the secret count by address, which only hashKeys: true hides", async () => {
  const anonymous = { remoteAddress: "192.0.2.7", headers: {} }
  expect(await partitionOf("header:authorization", {}, anonymous)).toBe("@ip:192.0.2.7")
  expect(await partitionOf("header:authorization", { hashKeys: true }, anonymous)).toMatch(HIDDEN)
  const shared = limiterWith({ field: "header:authorization", onMissing: "shared" }, { hashKeys: true })
  expect((await shared.explain(anonymous))[0]?.counter?.partition).toBe("@shared")
})

describe.each([
  ["header:authorization", TOKEN, undefined],
  ["header:x-user", "ann", true],
  ["ip", "192.0.2.7", true],
] as const)("with %s hidden", (field, value, hashKeys) => {
  const rule = { field, limit: 2 }

  it("overrides and lists compare the value itself", async () => {
    const raised = limiterWith({ ...rule, overrides: { [value]: 9 } }, { hashKeys })
    expect(await raised.decide(REQUEST)).toMatchObject({ limit: 9, remaining: 8 })
    const allowed = limiterWith({ ...rule, limit: 1, allow: [value] }, { hashKeys })
    await allowed.decide(REQUEST)
    expect(await allowed.decide(REQUEST)).toMatchObject({ allowed: true })
    const denied = limiterWith({ ...rule, deny: [value] }, { hashKeys })
    expect(await denied.decide(REQUEST)).toMatchObject({ allowed: false })
    const matched = limiterWith({ ...rule, match: { fields: { [field]: [value] } } }, { hashKeys })
    expect(await matched.decide(REQUEST)).toMatchObject({ remaining: 1 })
  })

  it("peek, reset, block and unblock apply to the client", async () => {
    const limiter = limiterWith(rule, { hashKeys })
    await limiter.decide(REQUEST)
    expect(await limiter.peek(REQUEST)).toMatchObject({ remaining: 1 })
    await limiter.reset(REQUEST)
    expect(await limiter.peek(REQUEST)).toMatchObject({ remaining: 2 })
    await limiter.block(REQUEST, { for: "1 minute" })
    expect(await limiter.decide(REQUEST)).toMatchObject({ allowed: false })
    await limiter.unblock(REQUEST)
    expect(await limiter.decide(REQUEST)).toMatchObject({ allowed: true })
  })

  it("no event, warning or explanation shows the value", async () => {
    const seen: unknown[] = []
    const logger = {
      warn: (...all: unknown[]) => seen.push(all),
      error: (...all: unknown[]) => seen.push(all),
    }
    const limiter = limiterWith({ ...rule, notify: [50] }, { hashKeys, logger })
    for (const event of ["decision", "near-limit"] as const)
      limiter.on(event, (...given: readonly unknown[]) => seen.push([given[0], given[2]]))
    for (let i = 0; i < 4; i++) seen.push(await limiter.decide(REQUEST))
    seen.push(await limiter.explain(REQUEST))
    expect(seen.length).toBeGreaterThan(8)
    expect(JSON.stringify(seen)).not.toContain(value)
  })
})

it.each([
  [{ hashKeys: "all" }, 'hashKeys: "all" is not a boolean'],
  [{ hashSecret: "" }, "hashSecret: … is not a secret"],
])("%o is rejected", (options, message) => {
  expect(() => limiterWith({ field: "ip" }, options as never)).toThrow(message)
})
