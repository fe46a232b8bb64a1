import { rulesInMemory, tokens } from "@sluice/service"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { DOORS, type Door } from "./door-clients.ts"
import { type Started, startService } from "./started.ts"

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

describe.each(DOORS)("tokens for decisions over %s", (_name, open) => {
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
  ])("let a call about service %s with the token %s end with the code %i", async (service, token, code) => {
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
})

it("a service without tokens for decisions requires no token and accepts any token", async () => {
  const started = await start({})
  for (const [, open] of DOORS) {
    const door = open(started)
    expect((await door.call("ShouldForwardRequest", asked("shop"))).code).toBe(OK)
    expect((await door.call("ShouldForwardRequest", asked("shop"), "any-token-at-all")).code).toBe(OK)
    door.close()
  }
  await started.stop()
})
