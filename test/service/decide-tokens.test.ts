import { Metadata } from "@grpc/grpc-js"
import { rulesInMemory, tokens } from "@sluice/service"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { DOORS, type Door } from "./door-clients.ts"
import { type Started, startService } from "./started.ts"
import { openStranger } from "./stranger.ts"

const OK = 0
const PERMISSION_DENIED = 7
const UNAUTHENTICATED = 16
const TOKENS = { shop: "token-of-the-shop", search: "token-of-search", "*": "token-for-every-service" }

async function start(parts: object): Promise<Started> {
  const home = rulesInMemory()
  const rule = { name: "users", field: "user", limit: 10, window: "1 day" }
  for (const service of ["shop", "search"]) await home.registry.register(service, [rule])
  return startService(home, { tokens: tokens({ shop: "token-of-the-rules" }), ...parts })
}

const asked = (service: string) => ({ service, request: '{"user":"ada"}' })

describe.each(DOORS)("tokens for decisions over %s", (name, open) => {
  let started: Started
  let door: Door
  beforeEach(async () => {
    started = await start({ decideTokens: tokens(TOKENS) })
    door = open(started)
  })
  afterEach(async () => {
    door.close()
    await started.stop()
    expect(started.faults).toEqual([])
  })

  it.each([
    ["shop", "token-of-the-shop", OK],
    ["search", "token-for-every-service", OK],
    ["nobody-registered-it", "token-for-every-service", OK],
    ["shop", undefined, UNAUTHENTICATED],
    ["shop", "token-of-search", PERMISSION_DENIED],
    // The token for changing rules does not allow decisions.
    ["shop", "token-of-the-rules", PERMISSION_DENIED],
    ["nobody-registered-it", "token-of-the-shop", PERMISSION_DENIED],
  ])("service %s with the token %s: %i", async (service, token, code) => {
    expect((await door.call("ShouldForwardRequest", asked(service), token)).code).toBe(code)
    const peek = await door.call("ShouldForwardRequest", { ...asked(service), peek: true }, TOKENS["*"])
    const isRegistered = service !== "nobody-registered-it"
    if (isRegistered) expect(peek.value.remaining).toBe(code === OK ? 9 : 10)
  })

  it("are required for each request of a batch", async () => {
    const requests = [asked("shop"), asked("search"), asked("shop")]
    const { code, value } = await door.call("ShouldForwardRequests", { requests }, "token-of-the-shop")
    expect(code).toBe(OK)
    const answers = value.responses as { should_forward: boolean; error?: { code: number } | null }[]
    expect(answers.map(({ should_forward, error }) => [should_forward, error?.code])).toEqual([
      [true, undefined],
      [false, PERMISSION_DENIED],
      [true, undefined],
    ])
    for (const [token, expected] of [
      [undefined, UNAUTHENTICATED],
      ["token-of-the-rules", PERMISSION_DENIED],
    ] as const) {
      expect((await door.call("ShouldForwardRequests", { requests }, token)).code).toBe(expected)
    }
  })

  it.runIf(name === "HTTP")("are answered with 401 or 403 if missing or wrong", async () => {
    const statusOf = async (method: string, body: object, headers: Record<string, string>) => {
      const response = await fetch(`${started.http}/sluice.v1.RateLimiter/${method}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      })
      return response.status
    }
    const wrong = { authorization: "Bearer token-of-search" }
    expect(await statusOf("ShouldForwardRequest", asked("shop"), {})).toBe(401)
    expect(await statusOf("ShouldForwardRequest", asked("shop"), wrong)).toBe(403)
    expect(await statusOf("ShouldForwardRequests", { requests: [asked("shop")] }, {})).toBe(401)
  })
})

it("tokens for decisions are required in Envoy's protocol", async () => {
  const started = await start({ decideTokens: tokens(TOKENS) })
  const envoy = openStranger(
    started.grpc,
    "envoy/service/ratelimit/v3/rls.proto",
    "envoy.service.ratelimit.v3.RateLimitService",
  )
  const ask = async (token?: string): Promise<unknown> => {
    const metadata = new Metadata()
    if (token !== undefined) metadata.set("authorization", `Bearer ${token}`)
    const descriptors = [{ entries: [{ key: "user", value: "ada" }] }]
    const called = await envoy.call("ShouldRateLimit", { domain: "shop", descriptors }, { metadata })
    return "value" in called ? called.value.overall_code : called.error.code
  }
  expect(await ask()).toBe(UNAUTHENTICATED)
  expect(await ask("token-of-search")).toBe(PERMISSION_DENIED)
  expect(await ask("token-of-the-shop")).toBe("OK")
  envoy.close()
  await started.stop()
})

it("a service without tokens for decisions requires none and accepts any", async () => {
  const started = await start({})
  for (const [, open] of DOORS) {
    const door = open(started)
    expect((await door.call("ShouldForwardRequest", asked("shop"))).code).toBe(OK)
    expect((await door.call("ShouldForwardRequest", asked("shop"), "any-token-at-all")).code).toBe(OK)
    door.close()
  }
  await started.stop()
})
