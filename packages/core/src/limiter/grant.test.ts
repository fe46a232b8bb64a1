import { describe, expect, it } from "vitest"
import { InvalidOptionError } from "../ground/errors.ts"
import { manualClock } from "../ground/manual-clock.ts"
import type { RequestFacts } from "../request/request.ts"
import type { CalendarRule } from "../rules/rule.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import type { CounterKey } from "../stores/store.ts"
import { createLimiter } from "./create-limiter.ts"
import type { LimiterSettings } from "./options/options.ts"

type Options = Omit<LimiterSettings<Asking>, "limit" | "window" | "per">
type Asking = RequestFacts & { readonly user?: string; readonly renewsOn?: number; readonly limit?: number }

const DAY = 86_400_000
const ADA: Asking = { user: "ada" }
const MONTHLY = {
  name: "monthly",
  field: "user",
  limit: 10,
  per: "month",
  timeZone: "Europe/Berlin",
} as const

/** A limiter on 15 March 2026 with a monthly rule, and rules that count by other windows. */
function setUp(options: Options = {}) {
  const clock = manualClock(Date.UTC(2026, 2, 15))
  const limiter = createLimiter<Asking>({
    clock,
    fields: { user: ({ user }) => user },
    rules: [
      MONTHLY,
      { name: "daily", field: "user", limit: 1_000, per: "day" },
      { name: "burst", field: "user", limit: 100, window: "1 minute" },
      { name: "all", field: "service", limit: 50, per: "year" },
    ],
    ...options,
  })
  const checkOf = async (request: Asking, rule = "monthly") =>
    (await limiter.peek(request, { rules: [rule] })).checks[0]
  return { clock, limiter, checkOf }
}

async function problemOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof InvalidOptionError)) throw new Error(`not refused: ${error}`)
  return error.problems.map(({ path, message }) => `${path} ${message}`).join()
}

describe("limiter.grant", () => {
  it("adds units to the limit of every rule with per that counts by client, until the period ends", async () => {
    const { clock, limiter, checkOf } = setUp()
    await limiter.decide(ADA, { cost: 10 })
    expect(await limiter.decide(ADA)).toMatchObject({ allowed: false, policy: "monthly" })
    await limiter.grant(ADA, 5)
    expect(await checkOf(ADA)).toMatchObject({ limit: 15, granted: 5, remaining: 5, allowed: true })
    expect(await checkOf(ADA, "daily")).toMatchObject({ limit: 1_005, granted: 5, remaining: 995 })
    for (const rule of ["burst", "all"]) expect(await checkOf(ADA, rule)).not.toHaveProperty("granted")
    expect(await limiter.decide(ADA, { cost: 6 })).toMatchObject({ allowed: false, limit: 15, remaining: 5 })
    expect(await limiter.decide(ADA, { cost: 5 })).toMatchObject({ allowed: true, remaining: 0 })
    const refused = await limiter.decide(ADA)
    expect(refused.allowed).toBe(false)
    // Clocks are set forward on 29 March.
    expect(refused.retryAfterMs).toBe(Date.UTC(2026, 2, 31, 22) - clock.now())
    clock.advance(refused.retryAfterMs)
    const check = await checkOf(ADA)
    expect(check).toMatchObject({ limit: 10, remaining: 10, resetAfterMs: 0 })
    expect(check).not.toHaveProperty("granted")
  })

  it("says when the granted units end, as the units in use do", async () => {
    const { clock, limiter, checkOf } = setUp()
    const leftMs = Date.UTC(2026, 2, 31, 22) - clock.now()
    await limiter.grant(ADA, 5)
    expect(await checkOf(ADA)).toMatchObject({ remaining: 15, nextUnitAfterMs: leftMs, resetAfterMs: leftMs })
    await limiter.decide(ADA, { cost: 2 })
    expect(await checkOf(ADA)).toMatchObject({ remaining: 13, nextUnitAfterMs: leftMs, resetAfterMs: leftMs })
    await limiter.decide(ADA, { cost: 9 })
    expect(await checkOf(ADA)).toMatchObject({ remaining: 4, nextUnitAfterMs: leftMs })
  })

  it("grants only under the named rules, also under a rule for the whole service", async () => {
    const { limiter, checkOf } = setUp()
    await limiter.grant(ADA, 5, { rules: ["all"] })
    expect(await checkOf(ADA, "all")).toMatchObject({ limit: 55, granted: 5 })
    expect(await checkOf(ADA)).toMatchObject({ limit: 10 })
  })

  it("admits a request that costs more than the limit, and clients whose limit is 0", async () => {
    const { limiter, checkOf } = setUp({ rules: [{ ...MONTHLY, limit: ({ limit = 10 }: Asking) => limit }] })
    for (const [asking, cost] of [
      [ADA, 12],
      [{ user: "bob", limit: 0 }, 3],
    ] as const) {
      expect(await limiter.decide(asking, { cost })).toMatchObject({
        ...{ allowed: false, refusal: "cost", retryAfterMs: Number.POSITIVE_INFINITY },
      })
      await limiter.grant(asking, 5)
      expect(await limiter.decide(asking, { cost })).toMatchObject({ allowed: true })
      expect(await limiter.decide(asking, { cost })).toMatchObject({ allowed: false })
      await expect(limiter.enforce(asking, { cost })).rejects.toThrow()
    }
    expect(await checkOf({ user: "bob", limit: 0 })).toMatchObject({ limit: 5, granted: 5, remaining: 2 })
    await limiter.grant({ user: "eve" }, 90)
    expect(await limiter.takeUpTo({ user: "eve" }, 200)).toMatchObject({ allowed: true, remaining: 0 })
    const never = limiter.acquire(ADA, { cost: 100 })
    await expect(never).rejects.toThrow()
  })

  it("takes granted units back, but at most all of them", async () => {
    const { limiter, checkOf } = setUp()
    await limiter.grant(ADA, 50)
    await limiter.grant(ADA, -45)
    expect(await checkOf(ADA)).toMatchObject({ limit: 15 })
    await limiter.grant(ADA, -45)
    expect(await checkOf(ADA)).toMatchObject({ limit: 10, remaining: 10 })
  })

  it("reaches a client by its key, and not a client whose period depends on a request", async () => {
    const { limiter, checkOf } = setUp()
    await limiter.grant(limiter.client("monthly", ["ada"]), 5)
    expect(await checkOf(ADA)).toMatchObject({ limit: 15 })
    expect(await checkOf({ user: "bob" })).toMatchObject({ limit: 10 })
    const anchored = setUp({
      rules: [{ ...MONTHLY, anchor: ({ renewsOn }: Asking) => renewsOn }],
    })
    expect(await problemOf(anchored.limiter.grant(anchored.limiter.client("monthly", ["ada"]), 5))).toContain(
      "is a function of the request",
    )
    const renewed = { user: "ada", renewsOn: 20 }
    await anchored.limiter.grant(renewed, 5)
    anchored.clock.advance(4 * DAY)
    expect(await anchored.checkOf(renewed)).toMatchObject({ limit: 15 })
    anchored.clock.advance(DAY)
    expect(await anchored.checkOf(renewed)).toMatchObject({ limit: 10 })
  })

  it("admits a request that waits", async () => {
    const { limiter } = setUp()
    await limiter.decide(ADA, { cost: 10 })
    const waiting = limiter.acquire(ADA)
    await limiter.grant(ADA, 2, { rules: ["monthly"] })
    expect(await waiting).toMatchObject({ allowed: true, limit: 12, remaining: 1 })
  })

  it("emits the units and the counters, for a record or an audit", async () => {
    const { limiter } = setUp()
    const events: unknown[] = []
    limiter.on("granted", (units: number, counters: readonly CounterKey[]) =>
      events.push([units, counters.map(({ policy, partition }) => [policy.name, partition])]),
    )
    await limiter.grant(ADA, 5)
    await limiter.grant(ADA, -1, { rules: ["monthly"] })
    expect(events).toEqual([
      [
        5,
        [
          ["monthly", "ada"],
          ["daily", "ada"],
        ],
      ],
      [-1, [["monthly", "ada"]]],
    ])
  })

  it("counts refusals that count up to the limit with its granted units", async () => {
    const { limiter, checkOf } = setUp({ rules: [{ ...MONTHLY, countRejected: true }] })
    await limiter.grant(ADA, 2)
    await limiter.decide(ADA, { cost: 9 })
    expect(await limiter.decide(ADA, { cost: 8 })).toMatchObject({ allowed: false, remaining: 0 })
    expect(await checkOf(ADA)).toMatchObject({ counts: { current: 12, previous: 2 } })
  })

  it("ends with a reset, and does nothing in a disabled limiter", async () => {
    const { limiter, checkOf } = setUp()
    await limiter.grant(ADA, 5)
    await limiter.reset(ADA)
    expect(await checkOf(ADA)).toMatchObject({ limit: 10, remaining: 10 })
    await expect(setUp({ enabled: false }).limiter.grant(ADA, 5)).resolves.toBeUndefined()
  })

  it.each<[string, (limiter: ReturnType<typeof setUp>["limiter"]) => Promise<void>, string]>([
    ["0 units", (limiter) => limiter.grant(ADA, 0), "units 0 is not a number of units"],
    ["half a unit", (limiter) => limiter.grant(ADA, 0.5), "units 0.5 is not a number of units"],
    ["text", (limiter) => limiter.grant(ADA, "5" as unknown as number), 'units "5" is not a number of units'],
    [
      "a rule with a window",
      (limiter) => limiter.grant(ADA, 5, { rules: ["monthly", "burst"] }),
      'rules contains "burst", which has no calendar period',
    ],
    ["an unknown rule", (limiter) => limiter.grant(ADA, 5, { rules: ["month"] }), "month"],
    ["2^53", (limiter) => limiter.grant(ADA, 2 ** 53), "units 9007199254740992 is not a number of units"],
    ["nobody", (limiter) => limiter.grant({}, 5), "request is not limited by any rule with per"],
    ["an option", (limiter) => limiter.grant(ADA, 5, { rule: "monthly" } as object), "rule"],
  ])("refuses %s, and grants nothing", async (_what, call, problem) => {
    const { limiter, checkOf } = setUp()
    expect(await problemOf(call(limiter))).toContain(problem)
    expect(await checkOf(ADA)).toMatchObject({ limit: 10 })
  })

  it.each<[string, Partial<CalendarRule<Asking>>]>([
    ["is on the deny list", { deny: ["ada"] }],
    ["is on the allow list", { allow: ["ada"] }],
    ["has no limit", { limit: () => Number.POSITIVE_INFINITY }],
    ["has an unknown limit", { limit: () => Promise.reject(new Error("no database")) }],
  ])("refuses a client that %s, because a grant would have no effect", async (_client, members) => {
    const { limiter } = setUp({ rules: [{ ...MONTHLY, ...members }], logger: { warn() {}, error() {} } })
    const problem = "request is not limited by any rule with per, so a grant would have no effect"
    expect(await problemOf(limiter.grant(ADA, 5))).toBe(problem)
  })

  it("says that another call may grant the units twice when the outcome is unknown", async () => {
    const store = memoryStore()
    const { limiter } = setUp({
      store: {
        take: (checks) => store.take(checks),
        read: (checks) => store.read(checks),
        refund: () => Promise.reject(new Error("connection lost")),
        reset: (keys) => store.reset(keys),
        close: () => store.close(),
      },
    })
    await expect(limiter.grant(ADA, 5)).rejects.toThrow(
      "It is unknown whether the units were granted. Call peek before another grant",
    )
  })
})
