import { describe, expect, it } from "vitest"
import { post } from "./post.ts"
import { FORWARD as PATH } from "./questions.ts"
import { openService, startService, useService } from "./started.ts"

const RULES = `
- service_id: dotted
  rules: { name: r, field: user.id, on_missing: skip, limit: 1, window: 1 day }
- service_id: deep
  rules: { name: r, field: a.b.c.d.e.f.g.h.i, on_missing: skip, limit: 1, window: 1 day }
- service_id: address
  rules: { name: r, field: ip, on_missing: skip, limit: 1, window: 1 day }
- service_id: header
  rules: { name: r, field: "header:X-Api-Key", on_missing: skip, limit: 1, window: 1 day }
- service_id: cookie
  rules: { name: r, field: "cookie:session", on_missing: skip, limit: 1, window: 1 day }
- service_id: query
  rules: { name: r, field: "query:page", on_missing: skip, limit: 1, window: 1 day }
- service_id: route
  rules: { name: r, field: [method, route], on_missing: skip, limit: 1, window: 1 day }
- service_id: matched
  rules: { name: r, match: { methods: [POST], path: "/orders/:id" }, limit: 1, window: 1 day }
- service_id: insists
  rules: { name: r, field: user, on_missing: deny, limit: 1, window: 1 day }
- service_id: shapes
  rules:
    - { name: bucket, field: user, algorithm: leaky-bucket, throttle: hard, burst: 9, limit: 1, window: 1 minute }
    - { name: trial, field: user, limit: 1, window: 1 day, shadow: true }
- service_id: soft
  rules: { name: r, field: user, limit: 100, window: 1 day, throttle: { kind: soft, percent: 50 } }
`

describe("the request object of a call", () => {
  const started = useService(RULES)

  const policyOf = async (service: string, known: unknown): Promise<unknown> => {
    const request = JSON.stringify(known)
    return (await post(started, PATH, { service, request, peek: true })).body.policy
  }
  const take = async (service: string, known: unknown): Promise<unknown> =>
    (await post(started, PATH, { service, request: JSON.stringify(known) })).body.shouldForward

  it.each([
    ["dotted", { user: { id: 7 } }, { user: { id: "7" } }, { user: { id: 8 } }],
    ["dotted", { "user.id": "x" }, { "user.id": "x", user: { id: 9 } }, { user: { id: 9 } }],
    ["address", { ip: "192.0.2.1" }, { ip: "::ffff:192.0.2.1" }, { ip: "192.0.2.2" }],
    [
      "header",
      { headers: { "X-Api-Key": "k" } },
      { headers: { "x-api-key": "k" } },
      { headers: { "X-API-KEY": "l" } },
    ],
    [
      "cookie",
      { cookies: { session: "s" } },
      { headers: { Cookie: "session=s" } },
      { cookies: { session: "t" } },
    ],
    ["query", { query: { page: 2 } }, { url: "/x?page=2" }, { url: "/x?page=3" }],
    [
      "route",
      { method: "get", route: "/a" },
      { method: "HEAD", route: "/a" },
      { method: "POST", route: "/a" },
    ],
  ])(
    "for service %s identifies one client by %j and %j, and another client by %j",
    async (service, one, same, other) => {
      expect([await take(service, one), await take(service, same), await take(service, other)]).toEqual([
        true,
        false,
        true,
      ])
    },
  )

  it.each([
    ["dotted", { user: 7 }],
    ["dotted", { user: { id: { text: 7 } } }],
    ["dotted", { user: null }],
    ["dotted", {}],
    ["deep", { a: { b: { c: { d: { e: { f: { g: { h: { i: 1 } } } } } } } } }],
    ["address", { ip: 7 }],
    ["address", { ip: "nowhere" }],
    ["header", { headers: "x-api-key: k" }],
    ["header", { headers: ["x-api-key"] }],
    ["header", { headers: { "x-api-key": 7 } }],
    ["header", { headers: { "x-api-key": ["k", "l"] } }],
    ["cookie", { cookies: 7 }],
    ["query", { url: 7 }],
    ["route", { method: 7, route: [] }],
  ])("for service %s lacks the field if it is %j", async (service, known) => {
    expect(await policyOf(service, known)).toBe("")
  })

  it("determines which rules match", async () => {
    expect(await policyOf("matched", { method: "POST", url: "/orders/7?full=1" })).toBe("r")
    expect(await policyOf("matched", { method: "GET", url: "/orders/7" })).toBe("")
    expect(await policyOf("matched", { method: "POST", url: "/" })).toBe("")
  })

  it.each(['"text"', "[1]", "null", "7", "", "{", '{"a":'])(
    "is refused if it is not a JSON object: %s",
    async (request) => {
      expect(await post(started, PATH, { service: "dotted", request })).toMatchObject({
        status: 400,
        body: { message: "request: is not the text of a JSON object" },
      })
    },
  )

  it("may contain at most 64 KiB of UTF-8", async () => {
    const sized = (bytes: number): string =>
      JSON.stringify({ text: "€".repeat(Math.floor((bytes - 11) / 3)) })
    expect(Buffer.byteLength(sized(65_536))).toBeLessThanOrEqual(65_536)
    expect(await post(started, PATH, { service: "dotted", request: sized(65_536) })).toMatchObject({
      status: 200,
    })
    expect(await post(started, PATH, { service: "dotted", request: sized(65_540) })).toMatchObject({
      status: 400,
      body: { message: "request: is longer than 65536 bytes" },
    })
  })

  it("may lack a required field, which makes the status 400", async () => {
    const { body } = await post(started, PATH, { service: "insists", request: "{}" })
    expect(body).toMatchObject({ shouldForward: false, statusCode: 400, policy: "r" })
    expect(body.body).toContain('\\"user\\"')
    expect(body).not.toHaveProperty("retryAfterMs")
  })

  it("is answered with delays, shadow rules and admissions above the limit", async () => {
    const ask = async (service: string, more: object = {}) =>
      (await post(started, PATH, { service, request: '{"user":1}', ...more })).body
    expect(await ask("shapes")).toMatchObject({ shouldForward: true, delayMs: "0", shadowed: [] })
    expect(await ask("shapes")).toMatchObject({ shouldForward: true, delayMs: "60000", shadowed: ["trial"] })
    expect(await ask("soft", { cost: 100 })).toMatchObject({ shouldForward: true, overLimit: false })
    expect(await ask("soft")).toMatchObject({ shouldForward: true, overLimit: true })
    expect(await ask("soft", { cost: 151 })).toMatchObject({ shouldForward: false, statusCode: 429 })
    expect(await ask("soft", { cost: 0 })).toMatchObject({ shouldForward: true })
  })

  it("may cost at most the largest exact number", async () => {
    const cost = "9007199254740992"
    expect(await post(started, PATH, { service: "soft", request: "{}", cost })).toMatchObject({
      status: 400,
      body: { message: "cost: 9007199254740992 is too large; it must be below 2^53" },
    })
  })

  it("counts as missing if the body is null", async () => {
    expect(await post(started, PATH, null)).toMatchObject({
      status: 400,
      body: { message: "service_id: is missing; give service_id or service" },
    })
  })
})

describe("an unregistered service", () => {
  it("is refused with 403 if unknown services are refused", async () => {
    const started = await openService(RULES, { unknownServices: "refuse" })
    const { body } = await post(started, PATH, { serviceId: 9, request: "" })
    expect(body).toMatchObject({
      shouldForward: false,
      statusCode: 403,
      headers: { "Content-Type": "application/problem+json" },
      body: '{"title":"Forbidden","status":403,"detail":"Service \\"9\\" is not registered."}',
    })
  })

  it("fails a whole batch if its check fails for one request", async () => {
    const fault = new Error("a secret of the house")
    const started = await startService(RULES, {
      onUnknownService() {
        throw fault
      },
    })
    const requests = [{ service: "soft", request: "{}" }, { service: "nobody" }]
    const { status, body } = await post(started, `${PATH}s`, { requests })
    expect(status).toBe(500)
    expect(JSON.stringify(body)).not.toContain("secret")
    expect(started.faults).toEqual([fault])
    await started.stop()
  })
})
