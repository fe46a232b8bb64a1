import { memoryStore } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { auditTo, rulesInMemory, tokens } from "@sluice/service"
import { describe, expect, it, onTestFinished } from "vitest"
import { DOORS, type Door } from "./door-clients.ts"
import { openService } from "./started.ts"

const HOUR = 3_600_000
const RULES = [
  { name: "per-user", field: "user.id", limit: 5, window: "1 day", algorithm: "fixed-window" },
  { name: "per-ip", field: "ip", limit: 100, window: "1 day", match: { path: "/pay" } },
  {
    ...{ name: "pair", fields: ["header:x-tenant", "cookie:session"], on_missing: "skip" },
    ...{ limit: 3, window: "1 day" },
  },
  { name: "all", limit: 1_000, window: "1 day" },
  { name: "trial", field: "user.id", limit: 1, window: "1 day", shadow: true },
  { name: "listed", field: "user.id", limit: 500, window: "1 day", allow: ["root"] },
  { name: "monthly", field: "user.id", limit: 900, per: "month", time_zone: "Europe/Berlin" },
]
const NOBODY = { degraded: false, allowed_by_list: false, shadow: false }

describe.each(DOORS)("over %s", (_, open) => {
  async function start() {
    const lines: [level: string, fields: Record<string, unknown>, message: string][] = []
    const warnings: string[] = []
    const clock = manualClock()
    const warn = (_fields: object, message: string) => void warnings.push(message)
    const at = (level: string) => (fields: object, message: string) =>
      void lines.push([level, { ...fields }, message])
    const started = await openService(rulesInMemory(), {
      shared: { store: memoryStore({ clock }), storeTimeoutMs: 20_000, clock, logger: { warn, error: warn } },
      tokens: tokens({ shop: "the-token", other: "another" }),
      audit: auditTo({ info: at("info"), warn: at("warn") }),
    })
    const door: Door = open(started)
    await door.call("RegisterService", { service: "shop", rules: RULES }, "the-token")
    lines.length = 0
    const call = (method: string, request: object, token = "the-token") =>
      door.call(`${method}Client`, { service: "shop", rule: "per-user", ...request }, token)
    const decide = async (request: object) =>
      (await door.call("ShouldForwardRequest", { service: "shop", request: JSON.stringify(request) })).value
    onTestFinished(() => door.close())
    const register = (request: object, token: string) => door.call("RegisterService", request, token)
    const grant = (request: object, token = "the-token") =>
      door.call("GrantUnits", { service: "shop", rule: "monthly", client: ["ada"], ...request }, token)
    return { call, grant, decide, register, lines, warnings }
  }

  it("a call about a client does not warn about the fields of other rules", async () => {
    const { call, decide, register, warnings } = await start()
    const rules = [
      ...RULES.filter(({ name }) => name !== "all"),
      { name: "each-ip", field: "ip", limit: 100, window: "1 day" },
    ]
    await register({ service: "shop", rules, overwrite: true }, "the-token")
    const named = { rule: "per-user", client: ["ada"] }
    for (const method of ["Show", "Reset", "Unblock"])
      expect(await call(method, named)).toMatchObject({ code: 0 })
    expect(await call("Block", { ...named, for: "1 hour" })).toMatchObject({ code: 0 })
    expect(warnings).toEqual([])
    // A request without an address must still cause a warning.
    await decide({ user: { id: "ada" }, method: "GET", url: "/pay" })
    expect(warnings).toEqual([expect.stringContaining("A caller sent no client address")])
  })

  it("a client over its limit can be shown, reset, blocked and unblocked", async () => {
    const { call, decide, lines } = await start()
    const client = ["ada"]
    const request = { user: { id: "ada" }, method: "GET", url: "/" }
    for (let i = 0; i < 5; i++) await decide(request)
    expect((await call("Show", { client })).value).toMatchObject({
      ...NOBODY,
      ...{ limit: 5, remaining: 0, refusal: "quota" },
    })
    expect((await call("Show", { client: ["eve"] })).value).toMatchObject({
      limit: 5,
      remaining: 5,
      refusal: "",
    })
    expect(await call("Reset", { client })).toMatchObject({ code: 0 })
    expect((await call("Show", { client })).value).toMatchObject({ remaining: 5, refusal: "" })
    expect(await call("Block", { client, for: "1 hour" })).toMatchObject({ code: 0 })
    const shown = (await call("Show", { client })).value
    expect(shown).toMatchObject({ refusal: "blocked", retry_after_ms: HOUR, remaining: 0 })
    const refused = await decide(request)
    expect(refused).toMatchObject({
      should_forward: false,
      policy: "per-user",
      retry_after_ms: HOUR,
      status_code: 429,
    })
    const [, retryAfter] =
      Object.entries(refused.headers as object).find(([name]) => /retry/i.test(name)) ?? []
    expect(Number(retryAfter)).toBe(3_600)
    expect(await decide({ ...request, user: { id: "eve" } })).toMatchObject({ should_forward: true })
    expect(await call("Unblock", { client })).toMatchObject({ code: 0 })
    expect(await decide(request)).toMatchObject({ should_forward: true })
    const hash = lines[0]?.[1].client
    expect(hash).toMatch(/^[\w-]{12}$/)
    const told = {
      service: "shop",
      rule: "per-user",
      client: hash,
      peer: expect.stringContaining("127.0.0.1"),
    }
    expect(lines).toEqual([
      ["info", told, "A client was reset."],
      ["info", { ...told, for: "1 hour" }, "A client was blocked."],
      ["info", told, "A client was unblocked."],
    ])
  })

  it("a client is granted units until the period of a rule ends, and they are taken back", async () => {
    const { call, grant, decide, lines } = await start()
    await decide({ user: { id: "ada" } })
    const shown = async () => (await call("Show", { rule: "monthly", client: ["ada"] })).value
    expect(await shown()).toMatchObject({ limit: 900, granted: 0, remaining: 899 })
    expect(await grant({ units: 50 })).toMatchObject({ code: 0 })
    expect(await shown()).toMatchObject({ limit: 950, granted: 50, remaining: 949 })
    expect(await grant({ units: -20 })).toMatchObject({ code: 0 })
    expect(await shown()).toMatchObject({ limit: 930, granted: 30, remaining: 929 })
    expect(lines).toMatchObject([
      ["info", { service: "shop", rule: "monthly", units: 50 }, "A client was granted units."],
      ["info", { service: "shop", rule: "monthly", units: -20 }, "A client was granted units."],
    ])
    expect(await grant({ units: 0 })).toMatchObject({ code: 3 })
    expect(await grant({ units: 5, rule: "per-user" })).toMatchObject({ code: 3 })
    expect(lines).toHaveLength(2)
  })

  it("a client is found by any field, even if the rule skips requests without the field", async () => {
    const { call, decide } = await start()
    await decide({ ip: "192.0.2.7", method: "GET", url: "/pay" })
    expect((await call("Show", { rule: "per-ip", client: ["192.0.2.7"] })).value).toMatchObject({
      remaining: 99,
    })
    await decide({ headers: { "X-Tenant": "acme" }, cookies: { session: "s1" } })
    expect((await call("Show", { rule: "pair", client: ["acme", "s1"] })).value).toMatchObject({
      remaining: 2,
    })
    expect((await call("Show", { rule: "all" })).value).toMatchObject({ remaining: 998 })
    await call("Block", { rule: "all", for: "1 hour" })
    expect(await decide({ ip: "192.0.2.9" })).toMatchObject({ should_forward: false, policy: "all" })
  })

  it("a client may be named by the hash that stands for its values in lists", async () => {
    const { call, decide } = await start()
    const id = "x".repeat(200)
    await decide({ user: { id } })
    const { partition } = (await call("Show", { client: [id] })).value as { readonly partition: string }
    expect(partition).toMatch(/^#/)
    await call("Block", { client: [partition], for: "1 hour" })
    expect(await decide({ user: { id } })).toMatchObject({ should_forward: false })
    await call("Unblock", { client: [partition] })
    expect(await decide({ user: { id } })).toMatchObject({ should_forward: true })
  })

  it.each([
    [
      "no client",
      {},
      3,
      { client: 'has 0 values, but rule "per-user" counts by user.id; accepted: a value for user.id' },
    ],
    ["no time", { client: ["ada"], for: "" }, 3, { for: expect.stringContaining('"" is not a duration') }],
    ["too long a time", { client: ["ada"], for: "2 years" }, 3, { for: expect.stringContaining("duration") }],
    [
      "a time without a unit",
      { client: ["ada"], for: "3600" },
      3,
      { for: expect.stringContaining("no unit") },
    ],
    [
      "a shadow rule",
      { rule: "trial", client: ["ada"] },
      3,
      { rule: expect.stringContaining("shadow rule") },
    ],
    [
      "a client that is always allowed",
      { rule: "listed", client: ["root"] },
      3,
      { client: expect.stringContaining("is on the allow list") },
    ],
    ["an unknown rule", { rule: "per-usr", client: ["ada"] }, 5, {}],
    ["an unknown service", { service: "*", client: ["ada"] }, 7, {}],
  ])("a call with %s is refused", async (_what, request, code, violations) => {
    const { call, lines } = await start()
    expect(await call("Block", { for: "1 hour", ...request })).toMatchObject({ code, violations })
    // Nothing was changed, so nothing is logged, especially no value that the caller invented.
    expect(lines).toEqual([])
  })

  it("a client cannot be unblocked under a shadow rule, which never blocks", async () => {
    const { call, lines } = await start()
    const refused = { code: 3, violations: { rule: "is a shadow rule, so it cannot block a client" } }
    expect(await call("Unblock", { rule: "trial", client: ["ada"] })).toMatchObject(refused)
    expect(lines).toEqual([])
  })

  it("no client is found in a service that has no rules or is not registered", async () => {
    const { call, register } = await start()
    const show = () => call("Show", { service: "other", client: ["ada"] }, "another")
    expect(await show()).toMatchObject({ code: 5, message: expect.stringMatching(/"other" has no rules;/) })
    await register({ service: "other" }, "another")
    expect(await show()).toMatchObject({ code: 5, message: expect.stringMatching(/: it has none\.$/) })
  })

  it("a client on the allow list is shown without counts", async () => {
    const { call } = await start()
    expect((await call("Show", { rule: "listed", client: ["root"] })).value).toMatchObject({
      ...{ ...NOBODY, allowed_by_list: true },
    })
  })

  it("a shadow rule is shown as a shadow rule, even if it would refuse", async () => {
    const { call, decide } = await start()
    await decide({ user: { id: "ada" } })
    expect((await call("Show", { rule: "trial", client: ["ada"] })).value).toMatchObject({
      ...{ refusal: "quota", remaining: 0, shadow: true },
    })
  })

  it("any address of an IPv6 network identifies the same client", async () => {
    const { call } = await start()
    await call("Block", { rule: "per-ip", client: ["2001:DB8:0:1::1"], for: "1 hour" })
    const shown = async (address: string) =>
      (await call("Show", { rule: "per-ip", client: [address] })).value.refusal
    expect(await shown("2001:db8:0:1:ffff::2")).toBe("blocked")
    expect(await shown("2001:db8:0:2::1")).toBe("")
    await call("Block", { rule: "per-ip", client: ["::ffff:192.0.2.7"], for: "1 hour" })
    expect(await shown("192.0.2.7")).toBe("blocked")
  })

  it("clients cannot be shown or changed without the service's token", async () => {
    const { call, grant, lines } = await start()
    for (const method of ["Show", "Reset", "Block", "Unblock"]) {
      const request = { client: ["ada"], ...(method === "Block" && { for: "1 hour" }) }
      expect((await call(method, request, "another")).code).toBe(7)
      expect((await call(method, request, "")).code).toBe(16)
    }
    expect((await grant({ units: 5 }, "another")).code).toBe(7)
    expect((await grant({ units: 5 }, "")).code).toBe(16)
    expect(lines).toEqual([])
  })
})
