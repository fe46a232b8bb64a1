import { liveRules } from "@sluice/rules"
import { describe, expect, it } from "vitest"
import { type Decision, RateLimitExceededError } from "../decision/decision.ts"
import type { Problem } from "../ground/errors.ts"
import { type ManualClock, manualClock } from "../ground/manual-clock.ts"
import type { RequestFacts } from "../request/request.ts"
import type { Rule } from "../rules/rule.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import { createLimiter } from "./create-limiter.ts"
import { decideAll } from "./decide-all.ts"
import type { Limiter } from "./interface/limiter.ts"
import type { LimiterOptions } from "./options/options.ts"

const RPM: Rule = { name: "rpm", field: "ip", limit: 3, window: "1 minute", algorithm: "fixed-window" }
const TPM: Rule = { ...RPM, name: "tpm", limit: 1_000, counts: "tokens" }
const ALICE: Asking = { remoteAddress: "192.0.2.1", tokens: 100 }

interface Asking extends RequestFacts {
  readonly tokens: number
}

function limiterOf(
  options: Partial<LimiterOptions<Asking>> = {},
  clock: ManualClock = manualClock(60_000),
): Limiter<Asking> {
  const units = { tokens: ({ tokens }: Asking) => tokens }
  return createLimiter<Asking>({ rules: [RPM, TPM], units, clock, ...options } as LimiterOptions<Asking>)
}

/** Returns the remaining units of each rule. */
async function leftOf(limiter: Limiter<Asking>, request: Asking = ALICE): Promise<Record<string, unknown>> {
  const { checks } = await limiter.peek(request)
  return Object.fromEntries(checks.map(({ policy, remaining }) => [policy, remaining]))
}

function problemsOf(make: () => unknown): readonly Problem[] {
  try {
    make()
  } catch (error) {
    return (error as { readonly problems: readonly Problem[] }).problems
  }
  return expect.unreachable("nothing was thrown")
}

describe("one decision over requests and tokens", () => {
  it("takes each rule's own unit, and reports it", async () => {
    const limiter = limiterOf()
    const { allowed, checks } = await limiter.decide(ALICE)
    expect(allowed).toBe(true)
    expect(checks.map(({ policy, unit, cost, remaining }) => [policy, unit, cost, remaining])).toEqual([
      ["rpm", "requests", 1, 2],
      ["tpm", "tokens", 100, 900],
    ])
  })

  it("takes nothing of any unit if one rule refuses", async () => {
    const limiter = limiterOf()
    expect(await limiter.decide({ ...ALICE, tokens: 1_001 })).toMatchObject({ allowed: false, policy: "tpm" })
    expect(await leftOf(limiter)).toEqual({ rpm: 3, tpm: 1_000 })
    for (let i = 0; i < 3; i++) await limiter.decide(ALICE)
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: false, policy: "rpm" })
    expect(await leftOf(limiter)).toEqual({ rpm: 0, tpm: 700 })
  })

  it("binds by the rule that admits the fewest more requests like this one, in any unit", async () => {
    const limiter = limiterOf()
    expect(await limiter.decide(ALICE)).toMatchObject({ policy: "rpm", remaining: 2 })
    expect(await limiter.decide({ ...ALICE, tokens: 700 })).toMatchObject({ policy: "tpm", remaining: 200 })
  })

  it("multiplies the amount by the rule's own cost", async () => {
    const limiter = limiterOf({ rules: [{ ...TPM, cost: 3 }] })
    expect(await limiter.decide(ALICE)).toMatchObject({ cost: 300, remaining: 700 })
  })

  it("says in words what each rule counts", async () => {
    const limiter = limiterOf({ rules: [TPM] })
    await expect(limiter.enforce({ ...ALICE, tokens: 1_001 })).rejects.toThrow(RateLimitExceededError)
    await expect(limiter.explain(ALICE)).resolves.toMatchObject([
      { policy: "tpm", unit: "tokens", cost: 100 },
    ])
  })
})

describe("the permits of a request", () => {
  const PERMITS: Rule = { name: "in-flight", field: "ip", concurrent: 5 }
  /** Returns the costs of the checks of a decision. */
  const costs = ({ checks }: Decision): readonly (number | undefined)[] => checks.map(({ cost }) => cost)

  it("are 1 for each request, however much the request costs, times the rule's own cost", async () => {
    const limiter = limiterOf({ rules: [RPM, PERMITS, { ...PERMITS, name: "double", cost: 2 }] })
    expect(costs(await limiter.decide(ALICE))).toEqual([1, 1, 2])
    expect(costs(await limiter.decide(ALICE, { cost: 2 }))).toEqual([2, 1, 2])
  })

  it("are none for a request that counts as 0 requests", async () => {
    const limiter = limiterOf({ rules: [PERMITS] })
    expect(costs(await limiter.decide(ALICE, { cost: 0 }))).toEqual([0])
    expect(await leftOf(limiter)).toEqual({ "in-flight": 5 })
  })

  it("stay the same when takeUpTo takes fewer units", async () => {
    const limiter = limiterOf({ rules: [{ ...RPM, limit: 4 } as Rule, TPM, PERMITS] })
    expect(costs(await limiter.takeUpTo(ALICE, 800, { unit: "tokens" }))).toEqual([1, 800, 1])
    expect(costs(await limiter.takeUpTo(ALICE, 9))).toEqual([3, 100, 1])
  })

  it("are not an amount that options or calls can give", async () => {
    const problem = { path: "units.concurrent-requests" }
    const units = { "concurrent-requests": 1 }
    expect(problemsOf(() => limiterOf({ rules: [PERMITS], units }))).toEqual([
      {
        path: 'units["concurrent-requests"]',
        message: '"concurrent-requests" is not a unit of your own',
        accepted: "another name; a rule with concurrent limits requests in progress",
      },
    ])
    // Calls may name any other unit.
    const limiter = limiterOf({ rules: [PERMITS], units: () => 1 })
    const message =
      '"concurrent-requests" cannot be given, because a request takes permits by the rules with concurrent'
    const accepted = "no such unit; release() gives the permits of a decision back"
    const wrong = { problems: [{ ...problem, message, accepted }] }
    await expect(limiter.decide(ALICE, { units })).rejects.toMatchObject(wrong)
    await expect(limiter.settle(await limiter.decide(ALICE), units)).rejects.toMatchObject(wrong)
    await expect(limiter.takeUpTo(ALICE, 1, { unit: "concurrent-requests" })).rejects.toMatchObject({
      problems: [{ path: "unit", message, accepted }],
    })
  })

  it("stay taken after a reset, unless their rule is named", async () => {
    const limiter = limiterOf({ rules: [RPM, PERMITS] })
    await limiter.decide(ALICE)
    await limiter.reset(ALICE)
    expect(await leftOf(limiter)).toEqual({ rpm: 3, "in-flight": 4 })
    await limiter.reset(ALICE, { rules: ["in-flight"] })
    expect(await leftOf(limiter)).toEqual({ rpm: 3, "in-flight": 5 })
  })

  it("cause no warning about a unit, and are not asked of a function that reads all units", async () => {
    const asked: string[] = []
    const warnings: string[] = []
    const units = (unit: string) => void asked.push(unit)
    const limiter = limiterOf({ rules: [PERMITS], units, logger: silent })
    limiter.on("warning", ({ code }) => warnings.push(code))
    await limiter.decide(ALICE)
    expect([asked, warnings]).toEqual([["requests"], []])
  })
})

describe("the amount of a unit", () => {
  it("is the call's own, otherwise what the option returns or is", async () => {
    const limiter = limiterOf({ rules: [TPM] })
    expect(await limiter.decide(ALICE, { units: { tokens: 7 } })).toMatchObject({ remaining: 993 })
    expect(await limiter.decide(ALICE, { units: {} })).toMatchObject({ remaining: 893 })
    expect(await limiter.decide(ALICE, { cost: 50 })).toMatchObject({ remaining: 793 })
    expect(await limiterOf({ rules: [TPM], units: { tokens: 4 } }).decide(ALICE)).toMatchObject({
      remaining: 996,
    })
  })

  it("of requests is the option cost or units.requests, and the same options of a call", async () => {
    for (const options of [{ cost: 2 }, { units: { requests: 2 } }, { units: { requests: () => 2 } }]) {
      const limiter = limiterOf({ rules: [RPM], ...options })
      expect(await limiter.peek(ALICE, { units: { requests: 4 } })).toMatchObject({ allowed: false })
      expect(await limiter.decide(ALICE)).toMatchObject({ cost: 2, remaining: 1 })
      expect(await limiter.decide(ALICE, { units: { requests: 1 } })).toMatchObject({ cost: 1, remaining: 0 })
    }
  })

  it("is read only if a rule of its unit applies, and once for several rules", async () => {
    let calls = 0
    const tokens = async () => ++calls
    const match = { methods: ["POST"] }
    const rules = [RPM, { ...TPM, match }, { ...TPM, match, name: "day", window: "1 day" }]
    const limiter = limiterOf({ rules, units: { tokens } })
    await limiter.decide({ ...ALICE, method: "GET" })
    expect(calls).toBe(0)
    const { checks } = await limiter.decide({ ...ALICE, method: "POST" })
    expect(calls).toBe(1)
    expect(checks.map(({ cost }) => cost)).toEqual([1, 1, 1])
  })

  it("is 1 with one warning if the function fails, and refused if it is too large to be counted", async () => {
    const warnings: string[] = []
    const tokens = ({ tokens: asked }: Asking) => (asked < 0 ? Number.NaN : asked)
    const limiter = limiterOf({ rules: [TPM], units: { tokens }, logger: silent })
    limiter.on("warning", ({ code, message }) => warnings.push(`${code} ${message}`))
    expect(await limiter.decide({ ...ALICE, tokens: -1 })).toMatchObject({ remaining: 999 })
    expect(await limiter.decide({ ...ALICE, tokens: -1 })).toMatchObject({ remaining: 998 })
    expect(warnings).toEqual([
      expect.stringContaining('SLUICE_INVALID_COST The function of the unit "tokens" returned NaN.'),
    ])
    const refused = await limiter.decide({ ...ALICE, tokens: Number.POSITIVE_INFINITY })
    expect(refused).toMatchObject({ allowed: false, refusal: "cost" })
  })

  it("of requests is 1 with a warning about the cost if its function returns undefined", async () => {
    const codes: string[] = []
    const limiter = limiterOf({ rules: [RPM], cost: () => undefined as never, logger: silent })
    limiter.on("warning", ({ code }) => codes.push(code))
    expect(await limiter.decide(ALICE)).toMatchObject({ cost: 1 })
    expect(codes).toEqual(["SLUICE_INVALID_COST"])
  })

  it("of a unit that nothing names is 1, with one warning for each unit", async () => {
    const warnings: string[] = []
    const rules = liveRules({
      load: () => Promise.resolve({ rules: [TPM, { ...TPM, name: "b", counts: "bytes" }], problems: [] }),
    })
    const limiter = createLimiter({
      rules,
      clock: manualClock(60_000),
      onRulesMissing: "deny",
      logger: silent,
    })
    limiter.on("warning", ({ code, message }) => warnings.push(`${code} ${message}`))
    await limiter.ready()
    for (let i = 0; i < 2; i++) await limiter.decide({ remoteAddress: "192.0.2.1" }, { units: { bytes: 5 } })
    const { checks } = await limiter.decide({ remoteAddress: "192.0.2.1" }, { units: { tokens: 9 } })
    expect(checks.map(({ remaining }) => remaining)).toEqual([1_000 - 11, 1_000 - 11])
    expect(warnings).toEqual([
      'SLUICE_UNIT_UNKNOWN A rule counts "tokens", but nothing says how many a request takes, so each request takes 1. Add "tokens" to the limiter\'s option units, or pass units: { "tokens": 20 } with each call.',
      expect.stringContaining('SLUICE_UNIT_UNKNOWN A rule counts "bytes"'),
    ])
    await limiter.close()
  })
})

describe("a function for units whose names are not known in advance", () => {
  it("returns the amount of each, which is 1 with a warning if it is undefined", async () => {
    const warnings: string[] = []
    const units = (unit: string) =>
      unit === "tokens" ? ({ tokens }: Asking) => tokens || undefined : undefined
    const limiter = limiterOf({ units, logger: silent })
    limiter.on("warning", ({ code }) => warnings.push(code))
    expect(await limiter.decide(ALICE, { units: { any: 3 } })).toMatchObject({ allowed: true })
    expect(await leftOf(limiter)).toEqual({ rpm: 2, tpm: 900 })
    expect(warnings).toEqual([])
    await limiter.decide({ ...ALICE, tokens: 0 })
    expect(await leftOf(limiter)).toEqual({ rpm: 1, tpm: 899 })
    expect(warnings).toEqual(["SLUICE_UNIT_UNKNOWN"])
    expect(problemsOf(() => limiterOf({ units, rules: [{ ...TPM, counts: "bytes" }] }))[0]?.path).toBe(
      "rules[0].counts",
    )
  })

  it("may return a number, which each request takes", async () => {
    const units = (unit: string) => (unit === "tokens" ? 5 : undefined)
    expect(await limiterOf({ units, rules: [TPM] }).decide(ALICE)).toMatchObject({ cost: 5 })
  })

  it("counts as 1 if it throws or returns no amount", async () => {
    const thrower = (): never => {
      throw new Error("no units today")
    }
    for (const units of [thrower, () => "5" as never]) {
      const limiter = limiterOf({ units, rules: [TPM], logger: silent })
      expect(await limiter.decide(ALICE)).toMatchObject({ remaining: 999 })
    }
  })
})

describe("settle", () => {
  it("corrects the named units and leaves the others", async () => {
    const limiter = limiterOf()
    await limiter.settle(await limiter.decide(ALICE), { tokens: 250 })
    expect(await leftOf(limiter)).toEqual({ rpm: 2, tpm: 750 })
    await limiter.settle(await limiter.decide(ALICE), { tokens: 0, requests: 0 })
    expect(await leftOf(limiter)).toEqual({ rpm: 2, tpm: 750 })
  })

  it("takes a number as requests", async () => {
    const limiter = limiterOf()
    await limiter.settle(await limiter.decide(ALICE), 2)
    expect(await leftOf(limiter)).toEqual({ rpm: 1, tpm: 900 })
  })

  it("has an effect once, also if the first call names only some units", async () => {
    const limiter = limiterOf()
    const decision = await limiter.decide(ALICE)
    await limiter.settle(decision, { tokens: 0 })
    await limiter.settle(decision, { requests: 0 })
    await limiter.refund(decision)
    expect(await leftOf(limiter)).toEqual({ rpm: 2, tpm: 1_000 })
  })

  it("charges the real number if only a free unit is needed to be admitted", async () => {
    const limiter = limiterOf({ rules: [TPM], units: { tokens: 1 } })
    await limiter.settle(await limiter.decide(ALICE), { tokens: 5_000 })
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: false, remaining: 0 })
  })
})

describe("the counter of a rule", () => {
  it("starts at 0 if the rule counts another unit", async () => {
    const counterOf = async (counts: string) => {
      const [one] = await limiterOf({ rules: [{ ...TPM, counts }] }).explain(ALICE)
      return one?.counter?.policy.counter
    }
    expect(await counterOf("tokens")).not.toBe(await counterOf("requests"))
  })
})

describe("refund", () => {
  it("gives back every unit", async () => {
    const limiter = limiterOf()
    await limiter.refund(await limiter.decide(ALICE))
    expect(await leftOf(limiter)).toEqual({ rpm: 3, tpm: 1_000 })
  })
})

describe("takeUpTo with a unit", () => {
  it("takes as many of the unit as are left, and the full amount of the others", async () => {
    const limiter = limiterOf()
    expect(await limiter.takeUpTo(ALICE, 900, { unit: "tokens" })).toMatchObject({ allowed: true, cost: 900 })
    expect(await limiter.takeUpTo(ALICE, 900, { unit: "tokens" })).toMatchObject({ allowed: true, cost: 100 })
    expect(await leftOf(limiter)).toEqual({ rpm: 1, tpm: 0 })
    expect(await limiter.takeUpTo(ALICE, 9, { unit: "tokens" })).toMatchObject({
      allowed: false,
      policy: "tpm",
    })
    expect(await leftOf(limiter)).toEqual({ rpm: 1, tpm: 0 })
  })

  it("does not call the function of the unit", async () => {
    let calls = 0
    const limiter = limiterOf({ units: { tokens: () => ++calls } })
    expect(await limiter.takeUpTo(ALICE, 5, { unit: "tokens" })).toMatchObject({ allowed: true, cost: 5 })
    expect(calls).toBe(0)
  })

  it("takes any unit if the limiter has no option units, and rejects what is not a unit", async () => {
    const limiter = createLimiter({ rules: [RPM], clock: manualClock(60_000) })
    expect(await limiter.takeUpTo({}, 5, { unit: "any" })).toMatchObject({ allowed: true, cost: 5 })
    expect(await limiter.takeUpTo({}, 1, null as never)).toMatchObject({ allowed: true, cost: 1 })
    await expect(limiter.takeUpTo({}, 5, { unit: 5 as never })).rejects.toThrow(
      "unit: 5 is not a unit of this limiter; accepted: requests; the option units of the limiter names units",
    )
    await expect(limiter.takeUpTo({}, 5, { units: "any" } as never)).rejects.toThrow(
      '"units" is not an option of takeUpTo(); did you mean "unit"?',
    )
  })

  it("asks the store once if a rule of another unit refuses", async () => {
    const store = memoryStore({ clock: manualClock(60_000) })
    let calls = 0
    const take = store.take.bind(store)
    store.take = (...args) => {
      calls++
      return take(...args)
    }
    const limiter = limiterOf({
      store,
      cost: 4,
      rules: [{ ...RPM, throttle: { kind: "soft", percent: 50 } }, TPM],
    })
    await limiter.decide(ALICE, { cost: 3 })
    calls = 0
    expect(await limiter.takeUpTo(ALICE, 500, { unit: "tokens" })).toMatchObject({
      allowed: false,
      policy: "rpm",
    })
    expect(calls).toBe(1)
  })
})

describe("acquire, and decideAll", () => {
  it("take the units that the call gives", async () => {
    const clock = manualClock(60_000)
    const [one, other] = [limiterOf({ service: "a" }, clock), limiterOf({ service: "b" }, clock)]
    const waiting = one.acquire({ ...ALICE, tokens: 1_000 }, { units: { tokens: 600 } })
    expect(await waiting).toMatchObject({ allowed: true })
    const blocked = one.acquire(ALICE, { units: { tokens: 600 } })
    clock.advance(60_000)
    expect(await blocked).toMatchObject({ allowed: true })
    expect(await leftOf(one)).toEqual({ rpm: 2, tpm: 400 })
    const store = memoryStore({ clock })
    const [first, second] = [limiterOf({ service: "a", store }), limiterOf({ service: "b", store })]
    const { allowed } = await decideAll([
      { limiter: first, request: ALICE, units: { tokens: 1_000 } },
      { limiter: second, request: ALICE, units: { tokens: 1_001 } },
    ])
    expect(allowed).toBe(false)
    expect(await leftOf(first)).toEqual({ rpm: 3, tpm: 1_000 })
    await other.close()
  })
})

describe("a name of a unit", () => {
  it("is an error in a rule in code if the option units does not have it", () => {
    const accepted = '"requests" or "tokens", or a unit that is added there'
    const message = '"token" is not a member of the option units; did you mean "tokens"?'
    const misspelled = { ...TPM, counts: "token" }
    expect(problemsOf(() => limiterOf({ rules: [RPM, misspelled] }))).toEqual([
      { path: "rules[1].counts", message, accepted },
    ])
    const inline = { limit: 5, window: "1m", counts: "token", rules: undefined }
    expect(problemsOf(() => limiterOf(inline))).toEqual([{ path: "counts", message, accepted }])
    const source = liveRules({ load: () => Promise.resolve({ rules: [misspelled], problems: [] }) })
    expect(problemsOf(() => limiterOf({ rules: source, defaultRules: [misspelled] }))).toEqual([
      { path: "defaultRules[0].counts", message, accepted },
    ])
  })

  it("is an error in a call if the limiter has the option units without it", async () => {
    const limiter = limiterOf()
    const accepted = "requests, tokens; the option units of the limiter names units"
    const message = '"token" is not a unit of this limiter; did you mean "tokens"?'
    const decision = await limiter.decide(ALICE)
    const calls = [
      () => limiter.decide(ALICE, { units: { token: 5 } }),
      () => limiter.acquire(ALICE, { units: { token: 5 } }),
      () => limiter.peek(ALICE, { units: { token: 5 } }),
      () => limiter.settle(decision, { token: 5 }),
    ]
    for (const call of calls) {
      await expect(call()).rejects.toMatchObject({ problems: [{ path: "units.token", message, accepted }] })
    }
    await expect(limiter.takeUpTo(ALICE, 5, { unit: "token" })).rejects.toMatchObject({
      problems: [{ path: "unit", message, accepted }],
    })
    expect(await leftOf(limiter)).toEqual({ rpm: 2, tpm: 900 })
  })

  it("is printable, and no member of every object", async () => {
    const wrong = problemsOf(() => limiterOf({ rules: [RPM], units: { "tok\n": 1, "": 1 } }))
    expect(wrong.map(({ message }) => message)).toEqual([
      '"tok\\n" is not the name of a unit',
      '"" is not the name of a unit',
    ])
    const odd = { ...TPM, counts: "constructor" }
    expect(problemsOf(() => limiterOf({ rules: [odd] }))[0]?.path).toBe("rules[0].counts")
    const limiter = limiterOf({ rules: [odd], units: JSON.parse('{"constructor":3}') })
    expect(await limiter.decide(ALICE)).toMatchObject({ cost: 3 })
  })
})

describe("invalid amounts", () => {
  it("are reported with their places", async () => {
    const limiter = limiterOf()
    const half = { message: "0.5 is not a number of units", accepted: "0 or a positive whole number" }
    await expect(limiter.decide(ALICE, { units: { tokens: 0.5 } })).rejects.toMatchObject({
      problems: [{ path: "units.tokens", ...half }],
    })
    await expect(limiter.decide(ALICE, { units: 5 as never })).rejects.toThrow(
      "units: 5 is not an object of units; accepted: { tokens: 1500 }, or a number of requests as cost",
    )
    await expect(limiter.decide(ALICE, { units: null as never })).rejects.toThrow(
      "units: null is not an object",
    )
    await expect(limiter.decide(ALICE, { cost: -1, units: {} })).rejects.toThrow("cost: -1 is not a cost")
    expect(await limiter.peek(ALICE, { units: { tokens: undefined as never } })).toMatchObject({
      allowed: true,
    })
    await expect(limiter.decide(ALICE, { cost: 1, units: { requests: 1 } })).rejects.toThrow(
      'units.requests: is given together with "cost", which is short for it; accepted: one of the two',
    )
    expect(problemsOf(() => limiterOf({ cost: 1, units: { requests: 1, tokens: 1 } }))).toEqual([
      {
        path: "units.requests",
        message: 'is given together with "cost", which is short for it',
        accepted: "one of the two",
      },
    ])
    expect(problemsOf(() => limiterOf({ units: { tokens: -1 } }))[0]).toMatchObject({ path: "units.tokens" })
    expect(problemsOf(() => limiterOf({ units: { tokens: 1_001 } }))).toEqual([
      {
        path: "units.tokens",
        message: 'a request of cost 1001 takes 1001 units of rule "tpm", which never admits more than 1000',
        accepted: "0 to 1000, or a function",
      },
    ])
  })
})

const silent = { warn() {}, error() {} }
