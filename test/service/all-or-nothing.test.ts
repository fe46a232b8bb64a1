import { rulesInMemory, tokens } from "@sluice/service"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { DOORS, type Door } from "./door-clients.ts"
import { type Started, startService } from "./started.ts"

const OK = 0
const INVALID_ARGUMENT = 3
const PERMISSION_DENIED = 7

interface Response {
  readonly should_forward?: boolean
  readonly remaining?: number
  readonly status_code?: number
  readonly retry_after_ms?: number
  readonly body?: string
}

describe.each(DOORS)("an all-or-nothing batch over %s", (_name, open) => {
  let started: Started
  let door: Door
  beforeEach(async () => {
    const home = rulesInMemory()
    const rule = (limit: number) => [{ name: "users", field: "user", limit, window: "1 day" }]
    await home.registry.register("search", rule(5))
    await home.registry.register("maps", rule(2))
    const decideTokens = tokens({ search: "token-of-search-only", "*": "token-for-every-service" })
    started = await startService(home, { decideTokens })
    door = open(started)
  })
  afterEach(async () => {
    door.close()
    await started.stop()
    expect(started.faults).toEqual([])
  })

  const asked = (service: string, more = {}) => ({ service, request: '{"user":"ada"}', ...more })
  const together = (requests: readonly object[], more = {}, token = "token-for-every-service") =>
    door.call("ShouldForwardRequests", { requests, all_or_nothing: true, ...more }, token)
  const left = async (service: string) =>
    (await door.call("ShouldForwardRequest", asked(service, { peek: true }), "token-for-every-service")).value
      .remaining

  it("takes units for every service", async () => {
    const { code, value } = await together([asked("search"), asked("maps", { cost: 2 })])
    expect(code).toBe(OK)
    expect(value.responses).toMatchObject([
      { should_forward: true, remaining: 4 },
      { should_forward: true, remaining: 0 },
    ])
    expect([await left("search"), await left("maps")]).toEqual([4, 0])
  })

  it("takes no units and refuses all requests if one service refuses", async () => {
    await together([asked("maps", { cost: 2 })])
    const responses = (await together([asked("search"), asked("maps")])).value.responses as Response[]
    expect(responses).toMatchObject([
      { should_forward: false, remaining: 5, status_code: 429 },
      { should_forward: false, remaining: 0, status_code: 429 },
    ])
    const [held, refused] = responses
    expect(Math.abs(Number(held?.retry_after_ms) - Number(refused?.retry_after_ms))).toBeLessThan(1_000)
    expect(JSON.parse(held?.body ?? "")).toMatchObject({
      status: 429,
      detail: expect.stringContaining("Another service"),
    })
    expect(held?.body).not.toContain("violated-policies")
    expect(refused?.body).toContain('"violated-policies":["users"]')
    expect(await left("search")).toBe(5)
  })

  it("omits headers and bodies if it is brief", async () => {
    const { value } = await together([asked("search"), asked("maps")], { brief: true })
    expect((value.responses as Response[]).map(({ body = "" }) => body)).toEqual(["", ""])
  })

  it("refuses all requests if a service is not registered and unknown services are refused", async () => {
    door.close()
    await started.stop()
    const home = rulesInMemory()
    await home.registry.register("search", [{ field: "user", limit: 5, window: "1 day" }])
    started = await startService(home, { unknownServices: "refuse" })
    door = open(started)
    const { value } = await together([asked("search"), asked("nobody")])
    expect(value.responses).toMatchObject([
      { should_forward: false, status_code: 403 },
      { should_forward: false, status_code: 403 },
    ])
    expect(await left("search")).toBe(5)
  })

  it("refuses the request for an unregistered service if another service refuses", async () => {
    await together([asked("maps", { cost: 2 })])
    const { value } = await together([asked("nobody"), asked("maps"), asked("search")])
    expect(value.responses).toMatchObject([
      { should_forward: false, status_code: 429 },
      { should_forward: false, status_code: 429 },
      { should_forward: false, status_code: 429 },
    ])
    expect(await left("search")).toBe(5)
  })

  it("admits an unregistered service together with a registered service", async () => {
    const { value } = await together([asked("nobody"), asked("search")])
    expect(value.responses).toMatchObject([{ should_forward: true }, { should_forward: true, remaining: 4 }])
  })

  it.each<[about: string, requests: readonly object[], field: string, description: RegExp]>([
    [
      "a service twice",
      [asked("search"), asked("search")],
      "requests[1].service",
      /one request for each service/,
    ],
    ["a peek", [asked("maps"), asked("search", { peek: true })], "requests[1].peek", /all_or_nothing/],
    ["no object", [asked("maps"), asked("search", { request: "[]" })], "requests[1].request", /JSON object/],
    ["no service", [asked("maps"), { request: "{}" }], "requests[1].service_id", /is missing/],
    ["too many", Array.from({ length: 21 }, (_, i) => asked(`s${i}`)), "requests", /at most 20 /],
  ])("fails and takes no units with %s", async (_about, requests, field, description) => {
    const answered = await together(requests)
    expect(answered.code).toBe(INVALID_ARGUMENT)
    expect(answered.violations[field]).toMatch(description)
    expect([await left("search"), await left("maps")]).toEqual([5, 2])
  })

  it("needs a token that is valid for each service", async () => {
    const { code } = await together([asked("search"), asked("maps")], {}, "token-of-search-only")
    expect(code).toBe(PERMISSION_DENIED)
    expect([await left("search"), await left("maps")]).toEqual([5, 2])
  })

  it("may be empty", async () => {
    const { code, value } = await together([])
    expect({ code, responses: value.responses ?? [] }).toEqual({ code: OK, responses: [] })
  })
})
