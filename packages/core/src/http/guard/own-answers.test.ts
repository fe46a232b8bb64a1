import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, it, vi } from "vitest"
import type { Decision } from "../../decision/decision.ts"
import type { Rejection } from "../../ground/answer.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import type { LimiterOptions } from "../../limiter/options/options.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { RuleRejection } from "../../rules/rejection.ts"
import type { Store } from "../../stores/store.ts"
import { createGuard } from "./create-guard.ts"

const CLIENT: RequestFacts = { remoteAddress: "192.0.2.1" }
const ONCE = { limit: 1, window: "1 minute" } as const
const PROBLEM = { title: "Quota Exceeded", "violated-policies": ["ip-1m"] }

function setUp(options: Partial<LimiterOptions<object>>) {
  const clock = manualClock(0)
  const logged: unknown[] = []
  const logger = { warn: (fields: object, text: string) => void logged.push({ ...fields, text }), error() {} }
  const guard = createGuard<object>({ ...ONCE, clock, logger, ...options } as LimiterOptions<object>)
  const refuse = async (facts: RequestFacts = CLIENT): Promise<Rejection> => {
    // A guard that checks a request in the event loop turn of its creation may warn.
    await nextTurn()
    for (let time = 0; time < 9; time++) {
      const { rejection } = await guard.check(facts, {})
      if (rejection !== undefined) return rejection
    }
    throw new Error("no request was refused")
  }
  return { clock, guard, logged, refuse }
}

const answered = ({ status, headers, body }: Rejection) => [status, Object.fromEntries(headers), body]
const headersWith = (type: string) => ({
  "Retry-After": "61",
  "Cache-Control": "no-store",
  "Content-Type": type,
})

describe("the option rejection", () => {
  it.each<[string, RuleRejection, unknown[]]>([
    ["a string", { body: "Slow down" }, [429, headersWith("text/plain; charset=utf-8"), "Slow down"]],
    [
      "an object as JSON",
      { status: 503, body: { error: "slow down" } },
      [503, headersWith("application/json"), '{"error":"slow down"}'],
    ],
    [
      "a string with its own media type",
      { body: "<p>Slow down</p>", contentType: "text/html" },
      [429, headersWith("text/html; charset=utf-8"), "<p>Slow down</p>"],
    ],
    [
      "the result of a function",
      { status: 420, body: (_request, rejection, { policy }) => ({ rule: policy, was: rejection.status }) },
      [420, headersWith("application/json"), '{"rule":"ip-1m","was":420}'],
    ],
    [
      "the text of a function with its own media type",
      { body: () => "<p>", contentType: "text/html" },
      [429, headersWith("text/html; charset=utf-8"), "<p>"],
    ],
  ])("sends %s together with Retry-After and Cache-Control", async (_what, rejection, expected) => {
    const { refuse, logged } = setUp({ rejection })
    expect(answered(await refuse())).toEqual(expected)
    expect(answered(await refuse({ ...CLIENT, headers: { accept: "image/png" } }))).toEqual(expected)
    expect(logged).toEqual([])
  })

  it("changes only the status of the standard response if it has no body", async () => {
    for (const status of [400, 503]) {
      const { refuse, clock } = setUp({ rejection: { status } })
      const json = await refuse()
      expect([json.status, Object.fromEntries(json.headers)]).toEqual([
        status,
        headersWith("application/problem+json"),
      ])
      expect(JSON.parse(json.body)).toMatchObject({ ...PROBLEM, status })
      clock.advance(1_000)
      expect(Object.fromEntries((await refuse()).headers)["Retry-After"]).toBe("60")
      const text = await refuse({ ...CLIENT, headers: { accept: "text/plain" } })
      expect(text.status).toBe(status)
      expect(text.body).toBe("Quota Exceeded: ip-1m\nThe quota is used up. Try again in 60 seconds.\n")
    }
  })

  it("calls its body function with the request, the standard response and the decision", async () => {
    const body = vi.fn((_request: unknown, rejection: Rejection, _decision: Decision) => {
      // This change must not affect other refusals.
      ;(rejection.headers as unknown[]).length = 0
      return "mine"
    })
    const onRejected = vi.fn()
    const { guard, refuse } = setUp({ rejection: { body }, onRejected })
    const request = {}
    await guard.check(CLIENT, {})
    const outcome = await guard.check(CLIENT, request)
    expect(outcome.rejection?.body).toBe("mine")
    const [given, standard, decision] = body.mock.calls[0] as unknown[]
    expect(given).toBe(request)
    expect(standard).toMatchObject({ status: 429, body: expect.stringContaining('"status":429') })
    expect(decision).toMatchObject({ allowed: false, policy: "ip-1m", refusal: "quota" })
    expect(Object.fromEntries((await refuse()).headers)).toMatchObject({ "Retry-After": "61" })
    guard.answer(outcome, request, undefined)
    expect(onRejected.mock.calls[0]?.[1]).toMatchObject({
      status: 429,
      headers: expect.arrayContaining([["Retry-After", "61"]]),
      body: "mine",
    })
  })

  it.each<[string, () => unknown, string]>([
    ["throws", () => JSON.parse("{"), "failed: SyntaxError"],
    ["returns a promise", () => Promise.resolve("mine"), "returned "],
    ["returns a promise that rejects", () => Promise.reject(new Error("no")), "returned "],
    ["returns nothing", () => undefined, "returned undefined"],
    ["returns null", () => null, "returned null"],
    ["returns a number", () => 5, "returned 5"],
    ["returns a value that JSON cannot represent", () => ({ left: 1n }), "returned "],
    ["returns an object whose toJSON returns nothing", () => ({ toJSON: () => undefined }), "returned "],
  ])("sends the standard response and warns once if its body function %s", async (_what, body, said) => {
    const { refuse, logged } = setUp({ rejection: { status: 503, body: body as () => string } })
    for (let time = 0; time < 2; time++) {
      const { status, body: sent } = await refuse()
      expect([status, JSON.parse(sent)]).toEqual([503, expect.objectContaining({ ...PROBLEM, status: 503 })])
    }
    expect(logged).toEqual([
      expect.objectContaining({
        code: "SLUICE_CALLBACK_FAILED",
        text: expect.stringContaining(`rejection.body of rule "ip-1m" ${said}`),
      }),
    ])
  })

  it("replaces every kind of 429 response, with and without a time to wait", async () => {
    const rejection = { status: 403, body: "no" }
    const denied = setUp({ rejection, deny: ["192.0.2.1"] })
    expect(answered(await denied.refuse())).toEqual([
      403,
      { "Cache-Control": "no-store", "Content-Type": "text/plain; charset=utf-8" },
      "no",
    ])
    const costly = setUp({ rejection, cost: () => 2 })
    expect((await costly.refuse()).status).toBe(403)
    const blocked = setUp({ rejection, penalty: { refusals: 1, for: "1 hour" } })
    await blocked.refuse()
    expect(answered(await blocked.refuse())).toMatchObject([403, { "Retry-After": "3600" }, "no"])
  })

  it("does not change standard responses with status 400 or 503", async () => {
    const rejection = { status: 403, body: "no" }
    const missing = setUp({ rejection, field: "header:x-key", onMissing: "deny" })
    const { status, body } = await missing.refuse()
    expect([status, JSON.parse(body)]).toMatchObject([400, { title: "Bad Request" }])
    const failing = { take: () => Promise.reject(new Error("down")) } as unknown as Store
    for (const name of ["read", "refund", "reset", "close"] as const)
      (failing as unknown as Record<string, unknown>)[name] = () => undefined
    const gone = setUp({ rejection, onStoreFailure: "deny", store: failing, service: "shop" })
    expect(await gone.refuse()).toMatchObject({ status: 503, body: expect.stringContaining("Reduced") })
  })
})

describe("a rule's own rejection", () => {
  const options = {
    limit: undefined,
    window: undefined,
    rejection: { status: 503, body: "of the limiter" },
    rules: [
      { name: "own", field: "ip", limit: 1, window: "1 hour", rejection: { body: "of the rule" } },
      { name: "none", field: "ip", limit: 2, window: "1 minute" },
      {
        name: "standard",
        field: "header:x-key",
        onMissing: "skip",
        limit: 1,
        window: "1 day",
        rejection: {},
      },
    ],
  } as Partial<LimiterOptions<object>>

  it("completely replaces the limiter's rejection if this rule refuses", async () => {
    const { refuse } = setUp(options)
    expect(answered(await refuse())).toMatchObject([429, {}, "of the rule"])
    const { refuse: second } = setUp({ ...options, rules: [...(options.rules as [])].slice(1) })
    expect(answered(await second())).toMatchObject([503, {}, "of the limiter"])
    const { refuse: third } = setUp(options)
    const keyed = { ...CLIENT, headers: { "x-key": "7" } }
    expect(JSON.parse((await third(keyed)).body)).toMatchObject({ status: 429 })
  })

  it("may be part of a route's rule, and other routes use the limiter's rejection", async () => {
    const { guard } = setUp({ rejection: { body: "of the limiter" } })
    const bodyOn = async (label: string, rule: object): Promise<string | undefined> => {
      const route = guard.forRoute({ ...ONCE, ...rule }, { label })
      await route.check(CLIENT, {})
      return (await route.check(CLIENT, {})).rejection?.body
    }
    expect(await bodyOn("GET /a", { rejection: { body: "of the route" } })).toBe("of the route")
    expect(await bodyOn("GET /b", {})).toBe("of the limiter")
  })

  it("may be combined with a rejectionMessage, which then appears only in the decision", async () => {
    const { guard } = setUp({ rejection: { body: "mine" }, rejectionMessage: "later" })
    await guard.check(CLIENT, {})
    const { decision, rejection } = await guard.check(CLIENT, {})
    expect([rejection?.body, decision.rejectionMessage]).toEqual(["mine", "later"])
  })
})
