import { describe, expect, it } from "vitest"
import { startEnvoy } from "./envoy-started.ts"
import { TWO_SERVICES } from "./started.ts"

const rule = (more: string) => `
service_id: shop
rules:
  - { name: r, field: user_id, algorithm: fixed-window, ${more} }
`
const ADA = [{ user_id: "ada" }]

describe("the response to a client", () => {
  it("contains the headers of the strictest rule, and in a refusal Retry-After and a problem body", async () => {
    const { envoy } = await startEnvoy(`
service_id: shop
rules:
  - { name: per-user, field: user_id, rate: { requests_per_unit: 2, unit: minute }, request_rejection_message: slow down }
  - { name: per-ip, field: ip, rate: { requests_per_unit: 9, unit: hour } }
`)
    const asked = [{ remote_address: "192.0.2.1" }, { user_id: "ada" }]
    const admitted = await envoy.ask("shop", asked)
    expect(admitted.headers).toEqual({
      "RateLimit-Policy": '"per-user";q=2;w=60',
      RateLimit: '"per-user";r=1;t=61',
    })
    expect(admitted.body).toBe("")
    expect(admitted.metadata).toEqual({})
    await envoy.ask("shop", asked)

    const refused = await envoy.ask("shop", asked)
    expect(refused.headers).toEqual({
      "RateLimit-Policy": '"per-user";q=2;w=60',
      RateLimit: '"per-user";r=0;t=61',
      "Retry-After": "61",
      "Cache-Control": "no-store",
      "Content-Type": "application/problem+json",
    })
    expect(JSON.parse(refused.body)).toMatchObject({
      title: "Quota Exceeded",
      status: 429,
      "violated-policies": ["per-user"],
      rejection: "slow down",
    })
    expect(refused.metadata).toEqual({ policy: "per-user" })
  })

  it("contains the longest wait if several descriptors are refused", async () => {
    const { envoy } = await startEnvoy(`
service_id: shop
rules:
  - { name: per-user, field: user_id, rate: { requests_per_unit: 1, unit: minute } }
  - { name: per-ip, field: ip, rate: { requests_per_unit: 1, unit: hour } }
`)
    const asked = [{ user_id: "ada" }, { remote_address: "192.0.2.1" }]
    await envoy.ask("shop", asked)
    const refused = await envoy.ask("shop", asked)
    expect(refused.statuses).toEqual([
      "OVER_LIMIT per-user 1/MINUTE 0 left 61 s",
      "OVER_LIMIT per-ip 1/HOUR 0 left 3601 s",
    ])
    expect(refused.headers["Retry-After"]).toBe("3601")
  })
})

describe("the limit of a status", () => {
  it.each([
    ["1 second", "SECOND"],
    ["1 minute", "MINUTE"],
    ["1 hour", "HOUR"],
    ["1 day", "DAY"],
    ["1 week", "WEEK"],
    ["30 days", "MONTH"],
    ["365 days", "YEAR"],
    ["2 minutes", "UNKNOWN"],
    ["29 days", "UNKNOWN"],
  ])("for a window of %s has the unit %s", async (window, unit) => {
    const { envoy } = await startEnvoy(rule(`limit: 7, window: ${window}`))
    expect((await envoy.ask("shop", ADA)).statuses[0]).toMatch(new RegExp(`^OK r 7/${unit} 6 left \\d+ s$`))
  })

  it.each([
    ["month, anchor: 31", "2026-02-28T12:00:00Z", "MONTH", 31 * 24 - 12],
    ["month", "2026-02-28T12:00:00Z", "MONTH", 12],
    ["year", "2027-12-31T23:00:00Z", "YEAR", 1],
    ["week", "2026-11-30T00:00:00Z", "WEEK", 168],
    ["day, time_zone: Europe/Berlin", "2026-03-28T23:00:00Z", "DAY", 23],
  ])("for per: %s has the unit, and the time until the period ends", async (per, at, unit, hours) => {
    const { envoy, clock } = await startEnvoy(rule(`limit: 1, per: ${per}`))
    clock.set(Date.parse(at))
    const rest = `r 1/${unit} 0 left ${hours * 3_600} s`
    expect((await envoy.ask("shop", ADA)).statuses).toEqual([`OK ${rest}`])
    const refused = await envoy.ask("shop", ADA)
    expect([refused.statuses, refused.headers["Retry-After"]]).toEqual([
      [`OVER_LIMIT ${rest}`],
      String(hours * 3_600),
    ])
    clock.advance(hours * 3_600_000)
    expect((await envoy.ask("shop", ADA)).overall).toBe("OK")
  })

  it("is capped at the maximum of the protocol, like the remaining units", async () => {
    const { envoy } = await startEnvoy(rule("limit: 6000000000, window: 1 hour"))
    expect((await envoy.ask("shop", ADA)).statuses).toEqual(["OK r 4294967295/HOUR 4294967295 left 3600 s"])
  })

  it("has a reset time that is rounded up, because Envoy drops fractions of a second", async () => {
    const { envoy } = await startEnvoy(rule("limit: 1, window: 1500 ms"))
    expect((await envoy.ask("shop", ADA)).statuses).toEqual(["OK r 1/UNKNOWN 0 left 2 s"])
  })
})

describe("the metadata of a response", () => {
  it("contains the shadow rules that would have refused the request", async () => {
    const { envoy } = await startEnvoy(rule("limit: 1, window: 1 hour, shadow: true"))
    expect(await envoy.ask("shop", ADA)).toMatchObject({ overall: "OK", statuses: ["OK"], metadata: {} })
    expect(await envoy.ask("shop", ADA)).toMatchObject({
      overall: "OK",
      statuses: ["OK"],
      headers: {},
      metadata: { shadowed: ["r"] },
    })
  })

  it("shows that the request was admitted above the limit", async () => {
    const { envoy } = await startEnvoy(
      rule("limit: 2, window: 1 hour, throttle: { kind: soft, percent: 50 }"),
    )
    await envoy.ask("shop", ADA, 2)
    expect(await envoy.ask("shop", ADA)).toMatchObject({
      statuses: ["OK r 2/HOUR 0 left 3600 s"],
      metadata: { over_limit: true },
    })
    expect(await envoy.ask("shop", ADA)).toMatchObject({ overall: "OVER_LIMIT", metadata: { policy: "r" } })
  })

  it("contains the delay of a request to hold, which Envoy ignores", async () => {
    const { envoy } = await startEnvoy(`
service_id: shop
rules: [{ name: r, field: user_id, algorithm: leaky-bucket, throttle: hard, limit: 60, window: 1 minute, burst: 10 }]
`)
    expect((await envoy.ask("shop", ADA)).metadata).toEqual({})
    expect((await envoy.ask("shop", ADA)).metadata).toEqual({ delay_ms: 1000 })
  })
})

describe("a listener to decisions", () => {
  it("receives one decision per descriptor, and one for rules without a field if they are checked separately", async () => {
    const told: string[] = []
    const { envoy } = await startEnvoy(
      `${rule("limit: 9, window: 1 hour")}---
service_id: whole
rules: { name: all, limit: 9, window: 1 hour }
`,
      {
        onLimiter: (limiter) => limiter.on("decision", ({ policy }) => told.push(policy)),
      },
    )
    await envoy.ask("shop", [...ADA, { tenant: "t1" }])
    expect(told.splice(0)).toEqual(["r", ""])
    await envoy.ask("whole", ADA)
    expect(told.splice(0)).toEqual(["all"])
    await envoy.ask("whole", [...ADA, ...ADA])
    expect(told.splice(0)).toEqual(["", "", "all"])
  })
})

describe("a domain without rules", () => {
  it("is answered OK for each descriptor, and counted", async () => {
    let unknown = 0
    const { envoy } = await startEnvoy(TWO_SERVICES, {
      onUnknownService: () => unknown++,
    })
    expect(await envoy.ask("other", [...ADA, ...ADA])).toEqual({
      overall: "OK",
      statuses: ["OK", "OK"],
      headers: {},
      body: "",
      metadata: {},
    })
    expect(unknown).toBe(1)
  })

  it("is refused if unknown services are refused", async () => {
    const { envoy } = await startEnvoy(TWO_SERVICES, { unknownServices: "refuse" })
    const refused = await envoy.ask("other", [...ADA, ...ADA])
    expect(refused).toMatchObject({
      overall: "OVER_LIMIT",
      statuses: ["OVER_LIMIT", "OVER_LIMIT"],
      headers: { "Content-Type": "application/problem+json" },
    })
    expect(JSON.parse(refused.body)).toEqual({
      title: "Forbidden",
      status: 403,
      detail: 'Service "other" is not registered.',
    })
  })
})
