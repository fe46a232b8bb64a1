import { describe, expect, it, onTestFinished } from "vitest"
import { startEnvoy } from "./envoy-started.ts"
import { post } from "./post.ts"
import { FORWARD as PATH } from "./questions.ts"
import { useService } from "./started.ts"
import { openStranger } from "./stranger.ts"

const RULES = `
service_id: chat
rules:
  - { name: rpm, field: user, limit: 3, window: 1 hour }
  - { name: tpm, field: user, limit: 1000, window: 1 hour, counts: tokens }
`

describe("units of a call", () => {
  const started = useService(RULES)
  const ask = async (user: string, more: object = {}) =>
    post(started, PATH, { service: "chat", request: { user }, ...more })

  it("are counted by the rules of each unit, and named in headers", async () => {
    const { body } = await ask("ada", { units: { tokens: 600 } })
    expect(body).toMatchObject({ shouldForward: true, policy: "tpm", remaining: "400" })
    expect(body.headers).toMatchObject({
      "RateLimit-Policy": '"rpm";q=3;w=3600, "tpm";q=1000;qu="tokens";w=3600',
    })
    expect((await ask("ada", { units: { tokens: "401" } })).body).toMatchObject({ policy: "tpm" })
    expect((await ask("ada", { units: { tokens: 400 }, peek: true })).body.shouldForward).toBe(true)
    expect((await ask("ada", { cost: 3, units: { tokens: 1 } })).body).toMatchObject({ policy: "rpm" })
  })

  it("are 1 if a rule counts a unit that the call does not name", async () => {
    expect((await ask("bob", { units: { bytes: 5 } })).body).toMatchObject({ shouldForward: true })
    const { body } = await ask("bob", { units: { tokens: 999 }, peek: true })
    expect(body.shouldForward).toBe(true)
    expect((await ask("bob", { units: { tokens: 1000 }, peek: true })).body.shouldForward).toBe(false)
  })

  it("are the same over gRPC, alone and in a batch", async () => {
    const stranger = openStranger(started.grpc, "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter")
    onTestFinished(() => stranger.close())
    const request = { service: "chat", request: '{"user":"eve"}', units: { tokens: 500 } }
    expect(await stranger.call("ShouldForwardRequest", request)).toMatchObject({ value: { policy: "tpm" } })
    const requests = [request, { ...request, units: { tokens: 1 } }]
    expect(await stranger.call("ShouldForwardRequests", { requests, brief: true })).toMatchObject({
      value: { responses: [{ should_forward: true, remaining: 0 }, { policy: "tpm" }] },
    })
  })

  it.each([
    [
      "more than 16",
      Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`u${i}`, 1])),
      "units: has more than 16 units",
    ],
    ["requests", { requests: 1 }, 'units.requests: is not a unit here; use "cost"'],
    [
      "too many",
      { tokens: "9007199254740992" },
      "units.tokens: 9007199254740992 is too large; it must be below 2^53",
    ],
  ])("are rejected: %s", async (_what, units, message) => {
    const { status, body } = await ask("ada", { units })
    expect(status).toBe(400)
    expect(body.message).toBe(message)
  })
})

describe("hits of Envoy", () => {
  it("are the amount of every unit, because its protocol names none", async () => {
    const { envoy } = await startEnvoy(RULES.replaceAll("field: user", "field: user_id"))
    const ada = [{ user_id: "ada" }]
    expect((await envoy.ask("chat", ada, 2)).statuses).toEqual([
      expect.stringMatching(/^OK rpm 3\/HOUR 1 left/),
    ])
    expect((await envoy.ask("chat", ada, 2)).statuses[0]).toMatch(/^OVER_LIMIT rpm/)
  })
})
