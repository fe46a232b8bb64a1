import { EventEmitter } from "node:events"
import { setImmediate as nextTurn } from "node:timers/promises"
import { liveRules } from "@sluice/rules"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import type { Rejection } from "../../ground/answer.ts"
import { InvalidOptionError } from "../../ground/errors.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import { createLimiter } from "../../limiter/create-limiter.ts"
import { decisionOn } from "../../limiter/interface/mount-decision.ts"
import type { LimiterOptions, LimiterSettings } from "../../limiter/options/options.ts"
import type { DecisionStep } from "../../limiter/rule-set/steps.ts"
import type { RequestFacts } from "../../request/request.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import type { Store } from "../../stores/store.ts"
import { laterStore } from "../../stores/testing/later-store.ts"
import { createGuard } from "./create-guard.ts"
import type { Guard, GuardOptions } from "./guard.ts"
import type { Outcome } from "./mount-outcome.ts"

/** A request that stands in for the framework's own request. */
interface Req {
  readonly id?: string
}

const FACTS: RequestFacts = { method: "GET", url: "/", headers: {}, remoteAddress: "192.0.2.1" }
const QUIET = { warn() {}, error() {} }

function warnings(guard: Guard<Req>): string[] {
  const said: string[] = []
  guard.limiter.on("warning", ({ code, message }) => said.push(`${code}: ${message}`))
  return said
}

/** Creates a guard as an adapter does, at startup and before any request. */
async function mount(options: GuardOptions<Req>, clock = manualClock()): Promise<Guard<Req>> {
  const guard = createGuard<Req>("limiter" in options ? options : { clock, logger: QUIET, ...options })
  await Promise.resolve()
  return guard
}

const limit = (most: number, more: LimiterSettings<Req> = {}): LimiterOptions<Req> => ({
  ...more,
  limit: more.limit ?? most,
  window: more.window ?? "1m",
})

/** Returns the outcome. The store returns values, so the guard must as well. */
function checked(guard: Guard<Req>, request: Req = {}, facts: RequestFacts = FACTS): Outcome {
  const outcome = guard.check(facts, request)
  if (outcome instanceof Promise) throw new Error("The guard answered with a promise.")
  return outcome
}

describe("a guard", () => {
  it("returns the decision and the headers, and a rejection for a refused request", async () => {
    const guard = await mount(limit(1))
    const admitted = checked(guard)
    expect(admitted.decision).toMatchObject({ allowed: true, policy: "ip-1m" })
    expect(admitted.headers).toEqual([
      ["RateLimit-Policy", '"ip-1m";q=1;w=60'],
      ["RateLimit", '"ip-1m";r=0;t=61'],
    ])
    expect(admitted.removed).toEqual([])
    expect(admitted).not.toHaveProperty("rejection")
    const refused = checked(guard)
    expect(refused.headers).toEqual(admitted.headers)
    expect(refused.rejection).toMatchObject({
      status: 429,
      headers: [
        ["Retry-After", "61"],
        ["Cache-Control", "no-store"],
        ["Content-Type", expect.stringContaining("application/problem+json")],
      ],
    })
    expect(JSON.parse(refused.rejection?.body ?? "")).toMatchObject({ "violated-policies": ["ip-1m"] })
  })

  it("passes the framework's own request to the app's functions", async () => {
    const seen: Req[] = []
    const note = (request: Req): Req => {
      seen.push(request)
      return request
    }
    const guard = await mount(
      limit(1, {
        field: "user_id",
        fields: { user_id: (request) => note(request).id },
        skip: (request) => note(request) === undefined,
        cost: (request) => (note(request) === undefined ? 0 : 1),
      }),
    )
    const request = { id: "alice" }
    expect(checked(guard, request).decision.allowed).toBe(true)
    expect(seen).toEqual([request, request, request])
    expect(seen.every((each) => each === request)).toBe(true)
    expect(checked(guard, { id: "bob" }).decision.allowed).toBe(true)
    expect(checked(guard, { id: "alice" }).decision.allowed).toBe(false)
  })

  it("does not throw if the store, the clock, the logger and the app's functions fail", async () => {
    const failing = (): never => {
      throw Object.create(null)
    }
    const store: Store = { take: failing, read: failing, refund: failing, reset: failing, close() {} }
    let isFirst = true
    const guard = await mount({
      rules: [
        {
          name: "a",
          limit() {
            if (!isFirst) return failing()
            isFirst = false
            return 1
          },
          window: "1 day",
          field: "user",
          rejectionMessage: "exhausted-daily-limit",
        },
        { name: "b", field: "service", limit: 9, window: "1m" },
      ],
      headers: "legacy",
      store,
      clock: { now: failing },
      logger: { warn: failing, error: failing },
      cost: failing,
      skip: failing,
      fields: { user: failing },
      refundWhen: failing,
      onRejected: failing,
    })
    guard.limiter.on("decision", failing)
    const request = {}
    expect(checked(guard, request).decision).toMatchObject({ allowed: true, degraded: true })
    const outcome = checked(guard)
    expect(outcome.rejection?.status).toBe(429)
    // Only an error of onRejected reaches the app.
    await expect(guard.answer(outcome, {}, {})).rejects.toThrow()
    expect(() => guard.reportStatus(request, 200)).not.toThrow()
    await nextTurn()
  })

  it("does not warn if its own limiter was closed, but warns if a shared store was closed", async () => {
    const said: string[] = []
    const log = ({ code }: { readonly code: string }): void => void said.push(code)
    const logger = { warn: log, error: log }
    const own = await mount(limit(5, { logger }))
    await own.close()
    checked(own)
    expect(said).toEqual([])
    const store = memoryStore()
    const shared = await mount(limit(5, { logger, store }))
    store.close()
    checked(shared)
    expect(said).toEqual(["SLUICE_DEGRADED"])
  })

  it("closes the limiter that it created, but not a shared limiter", async () => {
    const limiter = createLimiter<Req>({ ...limit(5), logger: QUIET })
    const shared = await mount({ limiter })
    const own = await mount(limit(5))
    await Promise.all([shared.close(), own.close()])
    await expect(limiter.decide({})).resolves.toMatchObject({ allowed: true })
    await expect(own.limiter.decide({})).rejects.toThrow("closed")
  })

  it("stores its decision on the request", async () => {
    const guard = await mount(limit(1))
    const [first, second, unseen]: Req[] = [{}, {}, {}]
    const outcomes = [checked(guard, first), checked(guard, second)]
    expect([first, second].map((request) => decisionOn(request as Req))).toEqual(
      outcomes.map(({ decision }) => decision),
    )
    expect(decisionOn(first as Req)?.allowed).toBe(true)
    expect(decisionOn(second as Req)?.allowed).toBe(false)
    expect(decisionOn(unseen as Req)).toBeUndefined()
  })

  it("stores a decision without a policy on a skipped request", async () => {
    const guard = await mount(limit(1, { skip: () => true }))
    const request: Req = {}
    const { decision } = checked(guard, request)
    expect(guard.limiter.decisionOn(request)).toBe(decision)
    expect(decision).toMatchObject({ allowed: true, policy: "", checks: [] })
  })

  it("stores no decision before the store has responded", async () => {
    const guard = await mount(limit(1, { store: laterStore(memoryStore({ clock: manualClock() })) }))
    const request: Req = {}
    const asked = guard.check(FACTS, request)
    expect(decisionOn(request)).toBeUndefined()
    const { decision } = await asked
    expect(decisionOn(request)).toBe(decision)
  })

  it("asks the app for a response only if onRejected is set, also on routes", async () => {
    for (const [options, asksApp] of [
      [limit(1), false],
      [limit(1, { onRejected: () => undefined }), true],
    ] as const) {
      const guard = await mount(options)
      expect(
        [guard, guard.forRoute({ limit: 1, window: "1m" }, { label: "GET /" })].map((each) => each.asksApp),
      ).toEqual([asksApp, asksApp])
    }
  })

  it("needs the status of the response only if refundWhen is set", async () => {
    expect((await mount(limit(5))).needsStatus).toBe(false)
    expect((await mount(limit(5, { refundWhen: () => true }))).needsStatus).toBe(true)
  })

  const user = { user: () => "u" }

  it.each<[string, LimiterOptions<Req>, readonly DecisionStep[]]>([
    ["an address", limit(5), ["arrival"]],
    [
      "a header, a cookie, a query and a route parameter",
      limit(5, { field: ["header:x", "cookie:y", "query:z", "param:p"] }),
      ["arrival"],
    ],
    ["the whole service", limit(5, { field: "service" }), ["arrival"]],
    ["a body field", limit(5, { field: "body:user" }), ["body"]],
    ["a combination with a body field", limit(5, { field: ["ip", "body:user"] }), ["body"]],
    ["a bare name, which may be in the body", limit(5, { field: "user" }), ["body"]],
    ["a field of the app", limit(5, { field: "user", fields: user }), ["app"]],
    ["a combination with a field of the app", limit(5, { field: ["body:x", "user"], fields: user }), ["app"]],
    [
      "a field from a function that receives the name",
      limit(5, { field: "user", fields: () => () => "u" }),
      ["app"],
    ],
    ["a bare name in the match of the rule", limit(5, { match: { fields: { plan: ["free"] } } }), ["body"]],
    [
      "a field of the app in the match of the rule",
      limit(5, { match: { fields: { user: ["u"] } }, fields: user }),
      ["app"],
    ],
    [
      "a method and a path in the match of the rule",
      limit(5, { match: { methods: ["GET"], path: "/" } }),
      ["arrival"],
    ],
    ["a limit function", limit(5, { limit: () => 5 }), ["app"]],
    ["a cost function", limit(5, { cost: () => 1 }), ["body"]],
    ["a skip function", limit(5, { skip: () => false }), ["body"]],
    [
      "a cost function and a field of the app",
      limit(5, { field: "user", fields: user, cost: () => 1 }),
      ["app"],
    ],
    ["the method and the route", limit(5, { field: ["method", "route"] }), ["arrival"]],
    [
      "an address in one rule and a field of the app in another",
      {
        fields: user,
        rules: [
          { name: "a", limit: 5, window: "1m", field: "user" },
          { name: "b", limit: 5, window: "1m", field: "ip" },
        ],
      },
      ["arrival", "app"],
    ],
    [
      "a source whose rules are not known yet",
      { rules: liveRules({ load: async () => ({ rules: [], problems: [] }) }), onRulesMissing: "allow" },
      ["arrival", "body", "app"],
    ],
    [
      "a source and a skip function",
      {
        rules: liveRules({ load: async () => ({ rules: [], problems: [] }) }),
        onRulesMissing: "allow",
        skip: () => false,
      },
      ["body", "app"],
    ],
  ])("lists the steps at which it checks rules that need %s", async (_what, options, expected) => {
    const guard = await mount(options)
    expect(guard.steps).toEqual(expected)
    await guard.close()
  })
})

describe("several mounts on one request", () => {
  const two = async (first: LimiterOptions<Req>, second: LimiterOptions<Req>) => {
    const guards = [await mount({ name: "a", ...first }), await mount({ name: "b", ...second })] as const
    return (request: Req = {}) => guards.map((guard) => checked(guard, request))
  }

  it.each([
    [5, 9, "a", ["5", "4"]],
    [9, 5, "b", ["5", "4"]],
    [5, 5, "b", ["5", "4"]],
  ])(
    "with the limits %i and %i report rule %s in single-value fields",
    async (one, other, binding, numbers) => {
      const [, last] = (await two(limit(one, { headers: "legacy" }), limit(other, { headers: "legacy" })))()
      expect(last?.decision.policy).toBe(binding)
      expect(last?.headers.slice(0, 2)).toEqual([
        ["X-RateLimit-Limit", numbers[0]],
        ["X-RateLimit-Remaining", numbers[1]],
      ])
    },
  )

  it.each(["legacy", "triple", "draft-11"] as const)(
    "keep the %s fields of the earlier mount if the stricter later mount writes no headers",
    async (headers) => {
      const mounts = await two(limit(9, { headers }), limit(2, { headers: false }))
      const told = (outcomes: readonly Outcome[]) =>
        outcomes.map((outcome) => [outcome.headers, outcome.removed])
      for (let i = 0; i < 3; i++) {
        const [first, last] = mounts()
        expect(last?.decision).toMatchObject({ policy: "b", allowed: i < 2 })
        expect(told([last as Outcome])).toEqual([[first?.headers, []]])
      }
    },
  )

  it.each<[LimiterOptions<Req>, LimiterOptions<Req>, readonly string[], readonly string[]]>([
    [limit(5), limit(9, { headers: "legacy" }), ["RateLimit-Policy", "RateLimit"], []],
    [
      limit(9),
      limit(5, { headers: "legacy" }),
      ["RateLimit-Policy", "RateLimit", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"],
      [],
    ],
    [
      limit(9, { headers: "legacy" }),
      limit(5),
      ["RateLimit-Policy", "RateLimit"],
      ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"],
    ],
  ])(
    "with two dialects keep only the single-value fields of the stricter mount",
    async (one, other, names, removed) => {
      const [, last] = (await two(one, other))()
      expect(last?.headers.map(([name]) => name)).toEqual(names)
      expect(last?.removed).toEqual(removed)
    },
  )

  describe("whose stricter mount omits some single-value fields", () => {
    const rest = ["RateLimit-Remaining", "RateLimit-Reset"]
    const gone = (): never => {
      throw new Error("gone")
    }
    const triple = { headers: "triple", window: "1m" } as const
    const degraded = (): LimiterOptions<Req> => ({
      ...triple,
      limit: 2,
      store: { take: gone, read: gone, refund: gone, reset: gone, close() {} },
    })
    const generous: LimiterOptions<Req> = { ...triple, limit: 9 }
    const policyAlone = [
      ["RateLimit-Limit", "2"],
      ["RateLimit-Policy", "9;w=60, 2;w=60"],
    ]

    it("remove these fields of the earlier mount if the later mount is stricter", async () => {
      const [first, last] = (await two(generous, degraded()))()
      expect(first?.headers.map(([name]) => name)).toEqual(["RateLimit-Limit", ...rest, "RateLimit-Policy"])
      expect(last?.decision).toMatchObject({ policy: "b", degraded: true })
      expect(new Map(last?.headers as [string, string][])).toEqual(new Map(policyAlone as [string, string][]))
      expect(last?.removed).toEqual(rest)
    })

    it("do not add these fields of the later mount if the earlier mount is stricter", async () => {
      const [, last] = (await two(degraded(), generous))()
      expect(last?.headers).toEqual([
        ["RateLimit-Limit", "2"],
        ["RateLimit-Policy", "2;w=60, 9;w=60"],
      ])
      expect(last?.removed).toEqual([])
    })
  })

  it("join their policies in one header, even if there are three mounts", async () => {
    const request = {}
    const policies: string[] = []
    for (const name of ["a", "b", "c"]) {
      const { headers } = checked(await mount(limit(5, { name })), request)
      policies.push(headers[0]?.[1] as string)
    }
    expect(policies.at(-1)).toBe('"a";q=5;w=60, "b";q=5;w=60, "c";q=5;w=60')
  })

  it("that share a rule name cause one warning, even with another mount in between", async () => {
    const guards = [
      await mount(limit(5, { name: "a" })),
      await mount(limit(5, { name: "b" })),
      await mount({ rules: ["c", "a"].map((name) => ({ name, field: "service", limit: 5, window: "1m" })) }),
    ]
    const said = guards.map(warnings)
    for (let i = 0; i < 2; i++) {
      const request = {}
      for (const guard of guards) checked(guard, request)
    }
    expect(said).toEqual([
      [],
      [],
      [
        'SLUICE_SAME_NAME: Two limiters decided the same request, and both have a rule named "a". Clients cannot tell ' +
          'the two rules apart in headers and refusals. Give one of them another name: name: "…".',
      ],
    ])
  })

  it.each([
    [true, false],
    [false, true],
  ])("cause no warning if one of two rules with the same name is a shadow rule", async (first, second) => {
    const guards = [
      await mount(limit(5, { name: "a", shadow: first })),
      await mount(limit(5, { name: "a", shadow: second })),
    ]
    const said = guards.map(warnings)
    const request = {}
    for (const guard of guards) checked(guard, request)
    expect(said).toEqual([[], []])
  })

  it("of one limiter count each request once, and cause one warning", async () => {
    const limiter = createLimiter<Req>({ ...limit(5), clock: manualClock(), logger: QUIET })
    const guards = [await mount({ limiter }), await mount({ limiter })] as const
    const said = warnings(guards[0])
    for (let i = 0; i < 2; i++) {
      const request = {}
      const first = checked(guards[0], request)
      const second = checked(guards[1], request)
      expect(second).toEqual({ decision: first.decision, headers: [], removed: [] })
    }
    expect((await limiter.peek(FACTS as Req)).remaining).toBe(3)
    expect(said).toEqual([
      'SLUICE_MOUNTED_TWICE: The limiter with rule "ip-1m" is mounted twice, so it received the same request twice. ' +
        "The request was counted once. Remove one of the mounts.",
    ])
  })

  it.each([
    [0, "The limiter is mounted twice"],
    [2, 'The limiter with rules "r0", "r1" is mounted twice'],
    [3, 'The limiter with rules "r0", "r1", "r2" is mounted twice'],
    [4, 'The limiter with rules "r0", "r1", "r2", … is mounted twice'],
  ])("of one limiter with %i rules cause a warning that names up to three rules", async (count, start) => {
    const rules = Array.from({ length: count }, (_, i) => ({
      name: `r${i}`,
      field: "service",
      limit: 5,
      window: "1m",
    }))
    const guard = await mount({ rules })
    const said = warnings(guard)
    const request = {}
    checked(guard, request)
    checked(guard, request)
    expect(said[0]).toMatch(`SLUICE_MOUNTED_TWICE: ${start}`)
  })

  describe.each(["immediately", "later", "in a queue"])("of one limiter that decides %s", (when) => {
    const make = (options: LimiterOptions<Req>) => {
      const clock = manualClock()
      const store = memoryStore({ clock })
      return createLimiter<Req>({
        ...options,
        clock,
        store: when === "later" ? laterStore(store) : store,
        logger: QUIET,
      })
    }
    const throttle = when === "in a queue" ? ({ kind: "queue", maxWaitMs: 1 } as const) : "hard"
    const login = { name: "login", field: "body:email", onMissing: "skip", throttle } as const
    const BODY: RequestFacts = { ...FACTS, body: { email: "bob@example.com" } }

    it("check at each mount the rules that match the request by then", async () => {
      const limiter = make({
        rules: [
          { name: "ip", limit: 9, window: "1m", field: "ip" },
          { ...login, limit: 2, window: "1m" },
        ],
      })
      const guards = [await mount({ limiter }), await mount({ limiter })] as const
      const said = warnings(guards[0])
      const statuses: unknown[] = []
      for (let i = 0; i < 3; i++) {
        const request = {}
        const early = await guards[0].check(FACTS, request)
        const late = await guards[1].check(BODY, request)
        statuses.push(late.rejection?.status ?? late.headers.find(([name]) => name === "RateLimit")?.[1])
        expect(early.decision.checks.map(({ policy }) => policy)).toEqual(["ip"])
        expect(limiter.decisionOn(request)?.checks.map(({ policy }) => policy)).toEqual(["login"])
      }
      expect(statuses).toEqual(['"ip";r=8;t=61, "login";r=1;t=61', '"ip";r=7;t=61, "login";r=0;t=61', 429])
      expect((await limiter.peek(FACTS as Req)).remaining).toBe(6)
      // A third mount would have nothing left to do.
      const request = {}
      for (const facts of [FACTS, BODY]) await guards[0].check(facts, request)
      expect(said).toEqual([])
      expect((await guards[1].check(BODY, request)).headers).toEqual([])
      expect(limiter.decisionOn(request)?.checks.map(({ policy }) => policy)).toEqual(["login"])
      expect(said).toEqual([expect.stringContaining('with rules "ip", "login" is mounted twice')])
    })

    it("decide at the second mount if the first mount has skipped the request", async () => {
      const limiter = make({ ...limit(1, { throttle }), skip: (request) => request.id === undefined })
      const guards = [await mount({ limiter }), await mount({ limiter })] as const
      const said = warnings(guards[0])
      const statuses: unknown[] = []
      for (let i = 0; i < 2; i++) {
        const request: { id?: string } = {}
        expect((await guards[0].check(FACTS, request)).headers).toEqual([])
        request.id = "a user"
        statuses.push((await guards[1].check(FACTS, request)).rejection?.status)
      }
      expect([statuses, said]).toEqual([[undefined, 429], []])
    })

    it("keep the decision of the first mount if the second skips the request", async () => {
      const limiter = make({ ...limit(1, { throttle }), skip: (request) => request.id !== undefined })
      const guards = [await mount({ limiter }), await mount({ limiter })] as const
      const request: { id?: string } = {}
      const { decision } = await guards[0].check(FACTS, request)
      request.id = "an admin"
      await guards[1].check(FACTS, request)
      expect(limiter.decisionOn(request)).toBe(decision)
    })
  })

  it("of one limiter count a request once, even with another limiter's mount in between", async () => {
    const limiter = createLimiter<Req>({ ...limit(5), clock: manualClock(), logger: QUIET })
    const guards = [await mount({ limiter }), await mount(limit(9, { name: "b" })), await mount({ limiter })]
    const request = {}
    const outcomes = guards.map((guard) => checked(guard, request))
    expect(outcomes[2]?.decision.policy).toBe("ip-1m")
    expect((await limiter.peek(FACTS as Req)).remaining).toBe(4)
  })
})

describe("the warning about limiters that are created in handlers", () => {
  const open = () => {
    const said: string[] = []
    const logger = { warn: (_fields: object, message: string) => said.push(message), error() {} }
    /**
     * Creates a limiter and passes a request to it, as a handler does. Returns a function that passes another request
     * to the same limiter.
     */
    const ask = (more: LimiterSettings<Req> = {}) => {
      const guard = createGuard<Req>({ ...limit(5, more), logger })
      guard.check(FACTS, {})
      return () => guard.check(FACTS, {})
    }
    return { said, ask, logger }
  }

  it("is logged when three in a row have equal rules and get one request each", () => {
    const { said, ask } = open()
    ask({ name: "other" })
    for (let i = 0; i < 2; i++) ask()
    expect(said).toEqual([])
    for (let i = 0; i < 2; i++) ask()
    expect(said).toEqual([
      "4 limiters in a row were created while a request was being handled, and got no other request. A limiter that each " +
        "request creates counts only that request. Create the limiter once, when the app starts, and mount it: " +
        "app.use(rateLimit({ … })). (@sluice/core/errors/sluice_created_in_handler.md)",
    ])
  })

  it("is logged when ten in a row have different rules", () => {
    const { said, ask } = open()
    for (let i = 0; i < 9; i++) ask({ name: `user ${i}` })
    expect(said).toEqual([])
    for (let i = 9; i < 30; i++) {
      ask({ name: `user ${i}` })
      expect(said).toHaveLength(1)
    }
  })

  it("is not logged if one of the limiters is used again, such as one per tenant", () => {
    const { said, ask } = open()
    for (let i = 0; i < 5; i++) {
      const others = Array.from({ length: 8 }, (_, tenant) => ask({ name: `tenant ${tenant}` }))
      others[i]?.()
    }
    expect(said).toEqual([])
  })

  it("is not logged for a limiter that decides another request in a later event-loop turn", async () => {
    const { said, ask } = open()
    const again = ask()
    ask()
    await Promise.resolve()
    again()
    for (let i = 0; i < 2; i++) ask()
    expect(said).toEqual([])
    ask()
    expect(said).toHaveLength(1)
  })

  it("is not logged if a handler only mounts an existing limiter again", () => {
    const { said, logger } = open()
    const limiter = createLimiter<Req>({ ...limit(5, { name: "mounted" }), logger })
    for (let i = 0; i < 30; i++) createGuard<Req>({ limiter }).check(FACTS, {})
    expect(said).toEqual([])
  })

  it("is emitted as a process warning if there is no logger", () => {
    const emitWarning = vi.fn()
    // Replace the process, because the warning is logged once per process and an earlier test may have caused it.
    vi.stubGlobal("process", Object.assign(Object.create(process), { emitWarning }))
    onTestFinished(() => void vi.unstubAllGlobals())
    for (let i = 0; i < 3; i++) createGuard<Req>(limit(5)).check(FACTS, {})
    const [told, ...others] = emitWarning.mock.calls
    expect([told?.[1], others]).toEqual([{ type: "SluiceWarning", code: "SLUICE_CREATED_IN_HANDLER" }, []])
  })

  it("is not logged for a limiter that is created at start in a test with fake timers", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "queueMicrotask", "performance"] })
    try {
      const guard = await mount(limit(5))
      const said = warnings(guard)
      checked(guard)
      expect(said).toEqual([])
    } finally {
      vi.useRealTimers()
    }
  })
})

describe("onRejected", () => {
  const OWN: Rejection = { status: 429, headers: [["X", "y"]], body: "mine" }
  const refusedBy = async (onRejected: LimiterOptions<Req>["onRejected"]) => {
    const guard = await mount(limit(1, onRejected === undefined ? {} : { onRejected }))
    checked(guard)
    const outcome = checked(guard)
    const said = warnings(guard)
    const answer = guard.answer(outcome, { id: "r" }, "response")
    return { outcome, answer, said }
  }

  it("cannot modify the standard response, neither for this client nor for other clients", async () => {
    const guard = await mount(
      limit(1, {
        onRejected: (_request, rejection) => {
          const { headers } = rejection as unknown as { headers: string[][] }
          headers[0]?.splice(0, 2, "X", "y")
          headers.push(["X", "z"])
          Object.assign(rejection, { body: "mine", status: 200 })
        },
      }),
    )
    checked(guard)
    const refusals = Array.from({ length: 2 }, () => checked(guard))
    const answers = refusals.map((outcome) => guard.answer(outcome, { id: "r" }, "response"))
    const { outcome } = await refusedBy(undefined)
    expect(answers).toEqual([outcome.rejection, outcome.rejection])
  })

  it("can replace the response with its return value or the value of its promise", async () => {
    expect((await refusedBy(() => OWN)).answer).toEqual(OWN)
    const { answer } = await refusedBy(async () => OWN)
    expect(answer).toBeInstanceOf(Promise)
    expect(await answer).toEqual(OWN)
  })

  const answerWith = async (status: number, ...headers: [string, string][]) =>
    (await refusedBy(() => ({ status, headers, body: "own" }))).answer

  it("may return repeated headers, of which only the last is sent, except cookies", async () => {
    const lines: [string, string][] = [
      ["Content-Type", "application/problem+json"],
      ["set-cookie", "a=1"],
      ["X-Own", "yes"],
      ["Set-Cookie", "b=2"],
      ["CONTENT-TYPE", "application/json"],
    ]
    expect(await answerWith(429, ...lines)).toEqual({
      status: 429,
      headers: [
        ["CONTENT-TYPE", "application/json"],
        ["X-Own", "yes"],
        ["Set-Cookie", "a=1"],
        ["Set-Cookie", "b=2"],
      ],
      body: "own",
    })
  })

  it.each([204, 205, 304])(
    "may return the status %i, which removes the body and the headers about it",
    async (status) => {
      const lines: [string, string][] = [
        ["Content-Type", "text/plain"],
        ["content-length", "3"],
        ["Content-Types", "kept"],
        ["X-Content-Type", "kept"],
      ]
      expect(await answerWith(status, ...lines)).toEqual({ status, headers: lines.slice(2), body: "" })
      expect(await answerWith(status + 200, ...lines)).toEqual({
        status: status + 200,
        headers: lines,
        body: "own",
      })
    },
  )

  it.each([200, 599])("may return any final status, such as %i", async (status) => {
    const own = { ...OWN, status } as unknown as Rejection
    expect((await refusedBy(() => own)).answer).toEqual(own)
  })

  it.each<[string, unknown]>([
    ["nothing", undefined],
    ["null", null],
    ["a number", 429],
    ["true", true],
    ["another response of Node", { headersSent: false, status() {}, headers: [], body: "" }],
  ])("does not change the standard response if it returns %s or a promise of it", async (_what, yielded) => {
    const now = await refusedBy(() => yielded as undefined)
    expect(now.answer).toBe(now.outcome.rejection)
    const then = await refusedBy(async () => yielded as undefined)
    expect(await then.answer).toBe(then.outcome.rejection)
    expect([...now.said, ...then.said]).toEqual([])
  })

  const status = "its status is not a whole number from 200 to 599"
  const headers = "its headers are not a list of [name, value] pairs that HTTP allows"
  it.each<[string, unknown, string]>([
    ["a string", "slow down", "it is not an object"],
    ["an object without any of the members", { error: "slow down" }, status],
    ["an object with a status and a message", { status: 429, message: "slow down" }, headers],
    ["a Response of the fetch API", new Response("slow down", { status: 429 }), headers],
    ["an array", [], status],
    ["an object without headers", { status: 429, body: "" }, headers],
    ["an object without a body", { status: 429, headers: [] }, "its body is not a string"],
    [
      "an object whose body is an object",
      { ...OWN, body: { error: "slow down" } },
      "its body is not a string",
    ],
    ["an object whose status is a string", { ...OWN, status: "429" }, status],
    ["an object with the status 199", { ...OWN, status: 199 }, status],
    ["an object with the status 600", { ...OWN, status: 600 }, status],
    ["an object whose headers are an object", { ...OWN, headers: { X: "y" } }, headers],
    [
      "an object with a valid and an invalid header",
      { ...OWN, headers: [...OWN.headers, ["X Y", "z"]] },
      headers,
    ],
    ["an object with a header that is not a pair", { ...OWN, headers: ["X"] }, headers],
    ["an object with a header whose value is not a string", { ...OWN, headers: [["X", 5]] }, headers],
    [
      "an object with a header that would split the response",
      { ...OWN, headers: [["X", "y\r\nZ: 1"]] },
      headers,
    ],
    ["an object with an invalid header name", { ...OWN, headers: [["X Y", "z"]] }, headers],
  ])(
    "causes the standard response and a warning with the reason if it returns %s",
    async (_what, yielded, why) => {
      const said = `SLUICE_CALLBACK_FAILED: onRejected returned a response that cannot be sent: ${why}. The standard response is sent. Return an object with status, headers and body, or false if onRejected answers by itself.`
      const now = await refusedBy(() => yielded as undefined)
      expect(now.answer).toBe(now.outcome.rejection)
      const then = await refusedBy(async () => yielded as undefined)
      expect(await then.answer).toBe(then.outcome.rejection)
      expect([now.said, then.said]).toEqual([[said], [said]])
    },
  )

  it("prevents the standard response if it returns false or a promise of it", async () => {
    const now = await refusedBy(() => false)
    expect(now.answer).toBeUndefined()
    const then = await refusedBy(async () => false)
    expect(then.answer).toBeInstanceOf(Promise)
    expect(await then.answer).toBeUndefined()
    expect([...now.said, ...then.said]).toEqual([])
  })

  it("is awaited if it returns a thenable that is not a promise", async () => {
    const thenable = {
      // biome-ignore lint/suspicious/noThenProperty: the test needs a thenable
      then: (fulfilled: (value: Rejection) => void) => fulfilled(OWN),
    }
    const { answer } = await refusedBy(() => thenable as Promise<Rejection>)
    expect(answer).toBeInstanceOf(Promise)
    expect(await answer).toEqual(OWN)
  })

  it("receives the request, the standard response, the decision and Node's response", async () => {
    const onRejected = vi.fn()
    const guard = await mount(limit(1, { onRejected }))
    checked(guard)
    const [outcome, request, response] = [checked(guard), {}, {}]
    guard.answer(outcome, request, response)
    const [given, standard, decision, answering] = onRejected.mock.calls[0] as unknown[]
    expect(standard).toEqual(outcome.rejection)
    expect([given, decision, answering]).toEqual([request, outcome.decision, response])
    expect([given === request, decision === outcome.decision, answering === response]).not.toContain(false)
  })

  it("may return Node's response, which is not awaited because it may never end", async () => {
    const guard = await mount(limit(1, { onRejected: (...[, , , response]) => response as undefined }))
    checked(guard)
    const outcome = checked(guard)
    const said = warnings(guard)
    // biome-ignore lint/suspicious/noThenProperty: Fastify's reply has a `then`
    expect(guard.answer(outcome, {}, { then: () => undefined })).toBe(outcome.rejection)
    expect(said).toEqual([])
  })

  it("is called after Retry-After was set, in case it responds by itself", async () => {
    const { outcome } = await refusedBy(() => false)
    expect(outcome.headers).toEqual([
      ["RateLimit-Policy", '"ip-1m";q=1;w=60'],
      ["RateLimit", '"ip-1m";r=0;t=61'],
      ["Retry-After", "61"],
      ["Cache-Control", "no-store"],
    ])
    expect((await refusedBy(undefined)).outcome.headers).toHaveLength(2)
  })

  it("has no effect and causes no warning if the app has already responded", async () => {
    for (const own of [OWN, "slow down", { error: 1 }, undefined]) {
      const guard = await mount(limit(1, { onRejected: () => own as Rejection }))
      checked(guard)
      const said = warnings(guard)
      expect(guard.answer(checked(guard), {}, "response", () => true)).toBeUndefined()
      expect(said).toEqual([])
    }
  })

  it("makes answer() reject with the object that it throws, or with a TypeError for another value", async () => {
    const error = new Error("oops")
    for (const [thrown, expected] of [
      [error, error],
      [{ status: 418 }, { status: 418 }],
      [undefined, new TypeError("onRejected threw a value that is not an Error: undefined")],
      [null, new TypeError("onRejected threw a value that is not an Error: null")],
      ["route", new TypeError("onRejected threw a value that is not an Error: route")],
    ]) {
      const now = await refusedBy(() => {
        throw thrown
      })
      await expect(now.answer).rejects.toEqual(expected)
      const later = await refusedBy(async () => {
        throw thrown
      })
      await expect(later.answer).rejects.toEqual(expected)
      expect([...now.said, ...later.said]).toEqual([])
    }
  })
})

describe("refundWhen", () => {
  const left = async (guard: Guard<Req>) => {
    await nextTurn()
    return (await guard.limiter.peek({ remoteAddress: "192.0.2.1" } as Req)).remaining
  }

  it("causes at most one refund per request, depending on the status of the response", async () => {
    const seen: unknown[] = []
    const guard = await mount(
      limit(2, {
        refundWhen(request, status) {
          seen.push([request, status])
          return status < 400
        },
      }),
    )
    const [one, two] = [{ id: "1" }, { id: "2" }]
    checked(guard, one)
    checked(guard, two)
    // Parallel guesses cannot bypass the limit.
    expect(checked(guard, { id: "3" }).decision.allowed).toBe(false)
    guard.reportStatus(one, 401)
    expect(await left(guard)).toBe(0)
    guard.reportStatus(two, 200)
    guard.reportStatus(two, 200)
    expect(await left(guard)).toBe(1)
    expect(seen).toEqual([
      [one, 401],
      [two, 200],
    ])
  })

  it("refunds only the decision of its own mount, even if another mount is stricter", async () => {
    const strict = await mount(limit(2, { name: "a" }))
    const generous = await mount(limit(9, { name: "b", refundWhen: () => true }))
    const request = {}
    checked(strict, request)
    expect(checked(generous, request).decision.policy).toBe("a")
    strict.reportStatus(request, 200)
    generous.reportStatus(request, 200)
    expect([await left(strict), await left(generous)]).toEqual([1, 9])
  })

  it("refunds the decision of its mount even if a later mount has made another decision", async () => {
    const first = await mount(limit(2, { name: "a", refundWhen: () => true }))
    const second = await mount(limit(9, { name: "b" }))
    const request = {}
    checked(first, request)
    checked(second, request)
    first.reportStatus(request, 200)
    expect([await left(first), await left(second)]).toEqual([2, 8])
  })

  it("refunds no units for a request that the guard has not checked or has refused", async () => {
    const guard = await mount(limit(1, { refundWhen: () => true }))
    guard.reportStatus({}, 200)
    checked(guard)
    const refused = {}
    checked(guard, refused)
    guard.reportStatus(refused, 429)
    expect(await left(guard)).toBe(0)
  })

  it.each<[string, () => unknown]>([
    [
      "failed: Error: oops",
      () => {
        throw new Error("oops")
      },
    ],
    ["returned 1", () => 1],
    ["returned [object Promise]", () => Promise.resolve(true)],
    ["returned [object Promise]", () => Promise.reject(new Error("late"))],
  ])("causes no refund and one warning if it %s", async (what, refundWhen) => {
    const guard = await mount(limit(5, { refundWhen: refundWhen as () => boolean }))
    const said = warnings(guard)
    for (let i = 0; i < 2; i++) {
      const request = {}
      checked(guard, request)
      guard.reportStatus(request, 200)
    }
    expect(await left(guard)).toBe(3)
    expect(said).toEqual([
      `SLUICE_CALLBACK_FAILED: refundWhen ${what}. It must return true or false, not a promise; otherwise the units stay taken.`,
    ])
  })

  it("causes no error if the store cannot refund the units", async () => {
    const inner = memoryStore({ clock: manualClock() })
    const guard = await mount(
      limit(5, {
        refundWhen: () => true,
        store: { ...laterStore(inner), refund: () => Promise.reject(new Error("gone")) },
      }),
    )
    const request = {}
    await guard.check(FACTS, request)
    guard.reportStatus(request, 200)
    expect(await left(guard)).toBe(4)
    await guard.limiter.close()
    expect(() => guard.reportStatus(request, 200)).not.toThrow()
    await nextTurn()
  })
})

describe("the guard of a route", () => {
  it("uses the route's rule instead of the limiter's inline rule, also in headers", async () => {
    const guard = await mount(limit(9))
    const route = guard.forRoute({ limit: 1, window: "1h" }, { label: "login" })
    await Promise.resolve()
    expect(checked(route).headers[0]).toEqual(["RateLimit-Policy", '"login";q=1;w=3600'])
    expect(checked(route).rejection?.status).toBe(429)
    expect(checked(guard).decision).toMatchObject({ policy: "ip-1m", remaining: 8 })
    await route.close()
    expect(checked(guard).decision).toMatchObject({ degraded: false, remaining: 7 })
  })

  it("calls the limiter's refundWhen", async () => {
    const guard = await mount(limit(9, { refundWhen: () => true }))
    const route = guard.forRoute({ limit: 3, window: "1h" }, { label: "login" })
    await Promise.resolve()
    expect(route.needsStatus).toBe(true)
    const request = {}
    checked(route, request)
    route.reportStatus(request, 200)
    await nextTurn()
    expect((await route.limiter.peek({ remoteAddress: "192.0.2.1" } as Req)).remaining).toBe(3)
  })

  it("shares its counter with the same route's guard at another mount until both are closed", async () => {
    const store = memoryStore({ clock: manualClock() })
    const { limiter } = await mount(limit(9, { name: "all", store }))
    const [one, other] = [createGuard<Req>({ limiter }), createGuard<Req>({ limiter })]
    const routes = [one, other].map((guard) => guard.forRoute({ limit: 2, window: "1h" }, { label: "login" }))
    await Promise.resolve()
    expect(routes.map((route) => checked(route).decision.remaining)).toEqual([1, 0])
    expect(() =>
      createGuard<Req>({ limiter }).forRoute({ limit: 3, window: "1h" }, { label: "login" }),
    ).toThrow(
      'name: "login" is already the name of a different rule at another mount of this limiter; ' +
        "accepted: another name, or the same rule at both mounts",
    )
    const count = () => createLimiter({ name: "login", limit: 1, window: "1h", store })
    await one.close()
    await one.close()
    expect(count).toThrow('another limiter already counts rule "login"')
    const elsewhere = other.forRoute({ limit: 2, window: "1h" }, { label: "elsewhere" })
    await elsewhere.close()
    expect(count).toThrow('another limiter already counts rule "login"')
    const third = createGuard<Req>({ limiter })
    const again = third.forRoute({ limit: 2, window: "1h" }, { label: "login" })
    // A second call is a no-op.
    await again.close()
    await again.close()
    expect(count).toThrow('another limiter already counts rule "login"')
    await routes[1]?.close()
    expect(count).not.toThrow()
    await other.close()
    // The shared limiter and its own rules stay open.
    expect((await limiter.peek({ remoteAddress: "192.0.2.1" } as Req)).remaining).toBe(9)
  })

  it("does not release requests of other guards when it closes", async () => {
    const clock = manualClock()
    const queue = { throttle: { kind: "queue" }, algorithm: "fixed-window", window: "1 second" } as const
    const guard = await mount(limit(1, { ...queue, name: "q" }), clock)
    const route = guard.forRoute({ limit: 9, window: "1h" }, { label: "login" })
    checked(guard)
    const response = Object.assign(new EventEmitter(), { writableEnded: false })
    const held = guard.check(FACTS, {}, response as never)
    await route.close()
    clock.advance(1_000)
    expect((await held)?.rejection).toBeUndefined()
    await guard.close()
    expect(() => guard.forRoute({ limit: 9, window: "1h" }, { label: "late" })).toThrow(
      "The guard has been closed.",
    )
  })

  it("derives its steps from its own rule", async () => {
    const guard = await mount(limit(9))
    expect(guard.forRoute({ limit: 3, window: "1h", field: "body:user" }, { label: "a" }).steps).toEqual([
      "body",
    ])
    expect(guard.steps).toEqual(["arrival"])
  })

  it("warns once about each problem that was not visible at start", async () => {
    const guard = await mount(limit(9))
    const said = warnings(guard)
    const error = (path: string) => new InvalidOptionError([{ path, message: "is wrong" }])
    for (const path of ["a", "a", "b"]) guard.warn(error(path))
    expect(said).toEqual(["a", "b"].map((path) => `SLUICE_INVALID_OPTION: Wrong options: ${path}: is wrong`))
  })

  it("is covered by the limiter's reset, also by rule name, and by decisionOn", async () => {
    const guard = await mount({
      rules: [
        { name: "ip", limit: 9, window: "1m", field: "ip" },
        { name: "all", field: "service", limit: 99, window: "1m" },
      ],
    })
    const routes = [
      guard.forRoute({ limit: 9, window: "1m" }, { label: "one" }),
      guard.forRoute({ limit: 9, window: "1m", field: "service" }, { label: "two" }),
    ] as const
    await Promise.resolve()
    const left = () => {
      const request = {}
      const told = Object.fromEntries(
        routes.flatMap((route) => {
          const { checks } = checked(route, request).decision
          return checks.map(({ policy, remaining }) => [policy, remaining])
        }),
      )
      return [told.one, told.two, told.ip, told.all]
    }
    const request = {}
    const one = checked(routes[0], request)
    expect(guard.limiter.decisionOn(request)).toBe(one.decision)
    expect((await mount(limit(9))).limiter.decisionOn(request)).toBeUndefined()
    expect(guard.limiter.decisionOn({})).toBeUndefined()
    await guard.limiter.refund(one.decision)
    expect(left()).toEqual([8, 8, 7, 97])
    await guard.limiter.reset({ remoteAddress: "192.0.2.9" } as Req)
    expect(left()).toEqual([7, 7, 5, 95])
    await guard.limiter.reset(FACTS as Req)
    expect(left()).toEqual([8, 6, 7, 93])
    await guard.limiter.reset(FACTS as Req, { rules: ["two", "ip"] })
    expect(left()).toEqual([7, 8, 7, 91])
    await guard.limiter.reset(FACTS as Req, { rules: ["one"] })
    expect(left()).toEqual([8, 7, 5, 89])
    await expect(guard.limiter.reset(FACTS as Req, { rules: ["three"] })).rejects.toThrow(
      'accepted: a list of these names: "ip", "all", "one", "two"',
    )
    await routes[0].close()
    await expect(guard.limiter.reset(FACTS as Req, { rules: ["one"] })).rejects.toThrow("not the name")
  })

  it("cannot have a rule that never admits the cost of a request", async () => {
    const guard = await mount({ ...limit(9), cost: 4 })
    expect(() => guard.forRoute({ limit: 3, window: "1h" }, { label: "login" })).toThrow(
      'cost: a request of cost 4 takes 4 units of rule "login", which never admits more than 3; accepted: 0 to 3, or a function',
    )
    expect(() => guard.forRoute({ limit: 4, window: "1h" }, { label: "login" })).not.toThrow()
  })
})

describe("a limiter behind an adapter", () => {
  it("accepts the framework's request or the facts of a request as its argument", async () => {
    const reader = (request: object) =>
      "peer" in request ? { ...FACTS, remoteAddress: String(request.peer) } : undefined
    const guard = createGuard<Req>({ ...limit(1), clock: manualClock(), logger: QUIET }, reader)
    await Promise.resolve()
    checked(guard)
    const asked: boolean[] = []
    for (const request of [{ peer: "192.0.2.1" }, { peer: "192.0.2.9" }, FACTS]) {
      asked.push((await guard.limiter.peek(request as Req)).allowed)
    }
    expect(asked).toEqual([false, true, false])
    await guard.limiter.reset({ peer: "192.0.2.1" } as Req)
    expect((await guard.limiter.decide(FACTS as Req)).allowed).toBe(true)
  })
})

describe("createGuard", () => {
  const problemsOf = (options: unknown) => {
    try {
      createGuard(options as GuardOptions<Req>)
      return []
    } catch (error) {
      return (error as InvalidOptionError).problems
    }
  }

  it("rejects a value that is not a limiter", () => {
    const accepted = "a limiter that createLimiter() returned"
    for (const [limiter, shown] of [
      [undefined, "undefined"],
      [null, "null"],
      [{}, "{}"],
      [5, "5"],
      [createLimiter, "a function"],
      [{ decide() {}, admit() {} }, "{}"],
      [Object.create(null), "{}"],
    ]) {
      const message = `${shown} is not a limiter`
      expect(problemsOf({ limiter })).toEqual([{ path: "limiter", message, accepted }])
    }
  })

  it("rejects any other option together with `limiter`", () => {
    const limiter = createLimiter({ ...limit(5), logger: QUIET })
    const accepted = "limiter alone, with this option given to createLimiter()"
    const message = "is given together with limiter"
    expect(problemsOf({ limiter, limit: 5, onRejected() {} })).toEqual([
      { path: "limit", message, accepted },
      { path: "onRejected", message, accepted },
    ])
    expect(problemsOf({ limiter })).toEqual([])
  })

  it.each([undefined, null, 5, "x", [], () => 1])("rejects %s as options", (options) => {
    expect(problemsOf(options)).toMatchObject([
      { path: "", accepted: expect.stringMatching(/limit(, |: 100, )window/) },
    ])
  })
})
