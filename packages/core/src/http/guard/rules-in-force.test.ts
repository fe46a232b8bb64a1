import { setImmediate as nextTurn } from "node:timers/promises"
import { createRuleBook, type LoadedRules, liveRules, type RuleSource } from "@sluice/rules"
import { describe, expect, it, onTestFinished } from "vitest"
import { InvalidRuleError, RuleSourceError } from "../../ground/errors.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import { countHeldTimers } from "../../ground/testing/held-timers.ts"
import { createLimiter } from "../../limiter/create-limiter.ts"
import type { Limiter, LimiterEvents } from "../../limiter/interface/limiter.ts"
import type { LimiterOptions } from "../../limiter/options/options.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { LiveRules } from "../../rules/live-rules.ts"
import type { RateRule, Rule } from "../../rules/rule.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import { createGuard } from "./create-guard.ts"
import { limiterOfRoute } from "./testing/limiter-of-route.ts"

const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const QUIET = { warn() {}, error() {} }

type Loaded = LimiterEvents<RequestFacts>["rules"][0]

/**
 * A rule source that the test controls. Each load returns the rules that were published last, or rejects with the
 * error that was published last.
 */
class Publisher implements RuleSource {
  #answer: () => Promise<LoadedRules>
  readonly #listeners = new Set<() => void>()
  readonly services: string[] = []

  constructor(rules: readonly unknown[] | Error | "never") {
    this.#answer = answering(rules)
  }
  get watched(): boolean {
    return this.#listeners.size > 0
  }
  load(service: string): Promise<LoadedRules> {
    this.services.push(service)
    return this.#answer()
  }
  watch(changed: () => void): () => void {
    this.#listeners.add(changed)
    return () => void this.#listeners.delete(changed)
  }
  async publish(rules: readonly unknown[] | Error | "never", version?: number): Promise<void> {
    this.#answer = answering(rules, version)
    for (const listener of this.#listeners) listener()
    await nextTurn()
  }
}

function answering(rules: readonly unknown[] | Error | "never", version?: number) {
  return (): Promise<LoadedRules> => {
    if (rules === "never") return new Promise(() => undefined)
    if (rules instanceof Error) return Promise.reject(rules)
    return Promise.resolve({
      rules: rules as Rule[],
      problems: [],
      ...(version === undefined ? {} : { version }),
    })
  }
}

function setUp(source: Publisher | LiveRules, options: LimiterOptions<RequestFacts> = {}) {
  const clock = manualClock()
  const choice = options.defaultRules === undefined ? ({ onRulesMissing: "allow" } as const) : {}
  const limiter = createLimiter({
    rules: source instanceof Publisher ? liveRules(source) : source,
    ...choice,
    clock,
    logger: QUIET,
    ...options,
  })
  const loaded: Loaded[] = []
  const errors: Error[] = []
  limiter.on("rules", (edition) => loaded.push(edition))
  limiter.on("rule-error", (error) => errors.push(error))
  onTestFinished(() => limiter.close())
  return { clock, limiter, loaded, errors }
}

const rule = (limit: number, more: Partial<RateRule> = {}): RateRule => ({
  name: "rule",
  field: "service",
  limit,
  window: "1m",
  ...more,
})

async function left(limiter: Limiter): Promise<[string, number | undefined][]> {
  return (await limiter.peek(ALICE)).checks.map(({ policy, remaining }) => [policy, remaining])
}

describe("rules of a source", () => {
  it("are loaded for the limiter's service", async () => {
    const source = new Publisher([rule(5)])
    const { limiter, loaded } = setUp(source, { service: 7 })
    await limiter.ready()
    expect(source.services).toEqual(["7"])
    expect(loaded).toEqual([{ service: "7", change: "loaded", names: ["rule"], problems: [] }])
  })

  it("show their current message to a refused client, even if the wait is the same", async () => {
    const source = new Publisher([rule(1, { rejectionMessage: "Buy pro." })])
    const { limiter } = setUp(source)
    await limiter.ready()
    const guard = createGuard<object>({ limiter: limiter as unknown as Limiter<object> })
    const told = async () => {
      const { rejection } = await guard.check(ALICE, {})
      return rejection && JSON.parse(rejection.body).rejection
    }
    expect([await told(), await told(), await told()]).toEqual([undefined, "Buy pro.", "Buy pro."])
    await source.publish([rule(1, { rejectionMessage: "We are closed." })])
    expect(await told()).toBe("We are closed.")
    await source.publish([rule(1, { rejectionMessage: "retry-with-fixed-time" })])
    expect(await told()).toBe("retry-with-fixed-time")
  })

  it("are no longer watched after the limiter is closed", async () => {
    const source = new Publisher([rule(5)])
    const { limiter } = setUp(source)
    await limiter.ready()
    expect(source.watched).toBe(true)
    await limiter.close()
    expect(source.watched).toBe(false)
  })
})

describe("the first rules", () => {
  it("delay the first requests until they are loaded", async () => {
    const source = new Publisher([rule(1)])
    const { limiter } = setUp(source)
    const decisions = await Promise.all([limiter.decide(ALICE), limiter.decide(ALICE), limiter.peek(ALICE)])
    expect(decisions.map(({ allowed, policy }) => [allowed, policy])).toEqual([
      [true, "rule"],
      [false, "rule"],
      [false, "rule"],
    ])
  })

  it("delay reset until their names are known", async () => {
    const { limiter } = setUp(new Publisher([rule(1)]))
    await expect(limiter.reset(ALICE, { rules: ["rule"] })).resolves.toBeUndefined()
  })

  it("delay requests for at most a second, and apply as soon as they are loaded", async () => {
    const source = new Publisher("never")
    const { limiter, clock } = setUp(source)
    let decided = 0
    const first = limiter.decide(ALICE).finally(() => decided++)
    const guarded = limiter.peek(ALICE).finally(() => decided++)
    clock.advance(999)
    await nextTurn()
    expect(decided).toBe(0)
    clock.advance(1)
    // The wait of a second follows the manual clock, not a real timer.
    await nextTurn()
    expect(decided).toBe(2)
    expect(await Promise.all([first, guarded])).toMatchObject([{ policy: "" }, { policy: "" }])
    // A later decision does not wait again.
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: true, policy: "" })
    await source.publish([rule(5)])
    expect(await left(limiter)).toEqual([["rule", 5]])
  })

  it("delay no request after a failed load, and apply after a later load", async () => {
    const source = new Publisher(new Error("no table"))
    const { limiter, clock, errors } = setUp(source)
    await expect(limiter.ready()).rejects.toThrow(RuleSourceError)
    expect(limiter.rules.error).toBeInstanceOf(RuleSourceError)
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: true, policy: "" })
    expect(errors.map(({ message }) => message)).toEqual([expect.stringContaining("no table")])
    const waiting = limiter.ready()
    await source.publish("never")
    clock.advance(500)
    await source.publish([rule(5)])
    await waiting
    expect(await left(limiter)).toEqual([["rule", 5]])
  })

  it("do not delay a skipped request, in any call or in a guard", async () => {
    const asked: RequestFacts[] = []
    const skip = (request: RequestFacts): boolean => {
      asked.push(request)
      return request === ALICE
    }
    const { limiter } = setUp(new Publisher("never"), { skip })
    const guard = createGuard<RequestFacts>({ limiter })
    await nextTurn()
    const decisions = [
      await limiter.decide(ALICE),
      await limiter.enforce(ALICE),
      await limiter.acquire(ALICE),
      await limiter.peek(ALICE),
      await limiter.takeUpTo(ALICE, 3),
    ]
    expect(decisions.map(({ allowed, policy }) => [allowed, policy])).toEqual(Array(5).fill([true, ""]))
    // Each call evaluates `skip` once.
    expect(asked).toHaveLength(5)
    expect((await guard.check(ALICE, ALICE)).decision).toMatchObject({ allowed: true, policy: "" })
  })

  it("delay a request that `skip` does not skip, and `skip` is called only once", async () => {
    let asked = 0
    const skip = () => ++asked > 100
    const publisher = new Publisher([{ name: "a", limit: 1, window: "1m" }])
    const { limiter } = setUp(publisher, { skip })
    expect(await limiter.decide(ALICE)).toMatchObject({ policy: "a" })
    expect(asked).toBe(1)
  })

  it("are not loaded if the limiter is disabled", async () => {
    const publisher = new Publisher("never")
    const { limiter } = setUp(publisher, { enabled: false })
    expect((await limiter.decide(ALICE)).allowed).toBe(true)
    await limiter.ready()
    await limiter.refresh()
    expect([publisher.services, publisher.watched]).toEqual([[], false])
    expect(limiter.rules).toEqual({ ageMs: 0, isStale: false, isRejected: false, problems: [] })
  })

  it("release the requests that wait for them when the limiter is closed", async () => {
    const { limiter } = setUp(new Publisher("never"))
    const waiting = limiter.ready()
    const decided = limiter.decide(ALICE)
    await Promise.all([limiter.close(), expect(waiting).rejects.toThrow("closed")])
    await expect(decided).resolves.toMatchObject({ allowed: true })
  })

  it("delay acquire() only until its signal aborts, which many calls may share", async () => {
    const { limiter } = setUp(new Publisher("never"))
    const warnings: Error[] = []
    const onWarning = (warning: Error) => void warnings.push(warning)
    process.on("warning", onWarning)
    const aborting = new AbortController()
    const waiting = Array.from({ length: 20 }, () => limiter.acquire(ALICE, { signal: aborting.signal }))
    await nextTurn()
    aborting.abort(new Error("enough"))
    await Promise.all(waiting.map((each) => expect(each).rejects.toThrow("enough")))
    process.off("warning", onWarning)
    expect(warnings).toEqual([])
  })

  it("make a waiting acquire() reject when the limiter is closed", async () => {
    const { limiter } = setUp(new Publisher("never"))
    const waiting = limiter.acquire(ALICE)
    await Promise.all([limiter.close(), expect(waiting).rejects.toThrow("closed")])
  })

  it("keep the process alive only while acquire() waits for them", () =>
    countHeldTimers(async (timers) => {
      const { limiter, clock } = setUp(new Publisher("never"))
      const before = timers()
      const waiting = limiter.acquire(ALICE)
      expect(timers()).toBe(before + 1)
      clock.advance(1_000)
      await waiting
      expect(timers()).toBe(before)
    }))

  it("do not keep the process alive while requests are decided without them, if the clock has no timer", () =>
    countHeldTimers((timers) => {
      setUp(new Publisher("never"), { clock: { now: () => 0 } })
      expect(timers()).toBe(0)
    }))

  it("are loaded even if the clock has no timer", async () => {
    const { limiter } = setUp(new Publisher([rule(5)]), { clock: { now: () => 0 } })
    expect(await limiter.decide(ALICE)).toMatchObject({ policy: "rule" })
  })
})

describe("default rules", () => {
  const defaults = { defaultRules: [rule(2)] }

  it("are in force only until the rules of the source have been loaded", async () => {
    const source = new Publisher(new Error("no table"))
    const { limiter, clock } = setUp(source, defaults)
    expect(await limiter.decide(ALICE)).toMatchObject({ limit: 2, remaining: 1 })
    clock.advance(500)
    await source.publish([rule(9)])
    expect(await left(limiter)).toEqual([["rule", 8]])
    await source.publish(new Error("no table"))
    expect(await left(limiter)).toEqual([["rule", 8]])
  })

  it("are not in force if the source responds in time, even with no rules", async () => {
    const { limiter } = setUp(new Publisher([rule(9)]), defaults)
    expect(await limiter.decide(ALICE)).toMatchObject({ limit: 9 })
    const none = setUp(new Publisher([]), defaults)
    expect(await none.limiter.decide(ALICE)).toMatchObject({ policy: "" })
  })

  it("apply, also on routes, to requests that have waited a second for the source", async () => {
    const { limiter, clock } = setUp(new Publisher("never"), defaults)
    const route = limiterOfRoute(limiter, { limit: 3, window: "1m" }, "login")
    const decided = route.decide(ALICE)
    clock.advance(1_000)
    expect((await decided).checks.map(({ policy }) => policy)).toEqual(["login", "rule"])
  })

  it("are validated at the start, and require live rules", () => {
    const make = (options: object) => () => createLimiter({ logger: QUIET, ...options })
    const wrong = [rule(0), rule(5, { window: "soon" })]
    expect(make({ rules: liveRules(new Publisher([])), defaultRules: wrong })).toThrow(
      / defaultRules\[0\]\.limit.*\n.* defaultRules\[1\]\.window/,
    )
    for (const options of [{ limit: 5, window: "1m" }, { rules: [rule(5)] }]) {
      expect(make({ ...options, ...defaults })).toThrow(
        "defaultRules: has no effect with rules that never change",
      )
    }
    expect(make({ rules: liveRules(new Publisher([])), defaultRules: 5 })).toThrow("5 is not a list of rules")
  })

  it("claim their names, and release the names when the source's rules load", async () => {
    const store = memoryStore({ clock: manualClock() })
    const { limiter } = setUp(new Publisher([rule(5, { name: "other" })]), { store, ...defaults })
    const second = () => createLimiter({ ...rule(1), store, logger: QUIET })
    expect(second).toThrow('another limiter already counts rule "rule"')
    await limiter.ready()
    expect(second).not.toThrow()
  })
})

describe("refresh", () => {
  it("rejects with the reason of its signal when the signal aborts", async () => {
    const source = new Publisher([rule(5)])
    const { limiter } = setUp(source)
    await limiter.ready()
    await source.publish("never")
    const aborting = new AbortController()
    const route = limiterOfRoute(limiter, { limit: 2, window: "1m" }, "login")
    const refreshed = [limiter, route].map((each) => each.refresh({ signal: aborting.signal }))
    aborting.abort(new Error("enough"))
    for (const each of refreshed) await expect(each).rejects.toThrow("enough")
    await expect(limiter.refresh({ signal: aborting.signal })).rejects.toThrow("enough")
  })
})

it.each([
  [
    "that were loaded before stay in force",
    [rule(5)],
    /so the rules may be out of date\. The last valid rules stay in force\./,
  ],
  [
    "that were never loaded are not in force",
    new Error("no table"),
    /and no rules have been loaded yet\. None are in force\./,
  ],
])("the warning about stale rules says whether older rules apply: rules %s", async (_which, first, told) => {
  const source: RuleSource & Publisher = Object.assign(new Publisher(first), { pollMs: 200 })
  const { limiter, clock } = setUp(source, { service: "shop" })
  const said: string[] = []
  limiter.on("warning", ({ code, message }) => {
    if (code === "SLUICE_RULES_STALE") said.push(message)
  })
  await limiter.ready().catch(() => undefined)
  await source.publish(new Error("no table")).catch(() => undefined)
  for (let seconds = 0; seconds < 10; seconds++) {
    clock.advance(1_000)
    await nextTurn()
  }
  expect(said).toEqual([expect.stringMatching(told)])
})

describe("a limiter that cannot be created", () => {
  it("releases its rule names if the polling interval is invalid", () => {
    const store = memoryStore({ clock: manualClock() })
    const source = Object.assign(new Publisher([]), { pollMs: 0 })
    expect(() => createLimiter({ rules: liveRules(source), defaultRules: [rule(1)], store })).toThrow(
      "source.pollMs: 0 is not an interval",
    )
    expect(() => createLimiter({ ...rule(1), store })).not.toThrow()
  })
})

describe("rules that share a store with another limiter", () => {
  it("are all rejected while the other limiter uses one of their names", async () => {
    const clock = manualClock()
    const store = memoryStore({ clock })
    const other = createLimiter({ name: "taken", limit: 1, window: "1m", store, clock, logger: QUIET })
    const source = new Publisher([rule(5), rule(5, { name: "taken" })])
    const said: string[] = []
    const error = ({ code }: { readonly code: string }, message: string) =>
      void said.push(`${code}: ${message}`)
    const { limiter, loaded, errors } = setUp(source, { store, clock, logger: { ...QUIET, error } })
    await expect(limiter.ready()).rejects.toThrow(
      'another limiter already counts rule "taken" of service "default"',
    )
    expect(loaded).toEqual([])
    expect(errors).toHaveLength(1)
    expect(said).toEqual([
      `SLUICE_RULES_REJECTED: the rule source, service "default": ${errors[0]?.message}\n` +
        "No rules are in force yet, so every request is admitted. (@sluice/core/errors/sluice_rules_rejected.md)",
    ])
    expect(limiter.rules.error).toBeInstanceOf(InvalidRuleError)
    await expect(limiter.refresh()).rejects.toThrow("another limiter")
    await source.publish([rule(4), rule(5, { name: "taken" })])
    expect(errors).toHaveLength(1)
    const patient = limiter.ready({ retry: true })
    await nextTurn()
    // The rules load as soon as the other limiter has released its names.
    await other.close()
    await patient
    expect(limiter.rules.error).toBeUndefined()
    expect((await left(limiter)).map(([name]) => name)).toEqual(["rule", "taken"])
    // A released name is free for other limiters.
    await source.publish([rule(5)])
    expect(() => createLimiter({ name: "taken", limit: 1, window: "1m", store })).not.toThrow()
  })

  it("stay in force if their next version contains a rule name of the other limiter", async () => {
    const clock = manualClock()
    const store = memoryStore({ clock })
    createLimiter({ name: "taken", limit: 1, window: "1m", store, clock, logger: QUIET })
    const source = new Publisher([rule(5)])
    const { limiter } = setUp(source, { store, clock })
    await limiter.ready()
    await source.publish([rule(9, { name: "new" }), rule(5, { name: "taken" })])
    expect(await left(limiter)).toEqual([["rule", 5]])
    // The rejected version has not claimed its new name, and the rules in force keep their names.
    expect(() => createLimiter({ name: "new", limit: 1, window: "1m", store })).not.toThrow()
    expect(() => createLimiter({ name: "rule", limit: 1, window: "1m", store })).toThrow("another limiter")
  })
})

describe("the rules of a route", () => {
  const routeOf = (limiter: Limiter) => limiterOfRoute(limiter, { limit: 2, window: "1m" }, "login")

  it("are its own rule and the limiter's rules, with shared counters", async () => {
    const limiter = createLimiter({ rules: [rule(9)], clock: manualClock(), logger: QUIET })
    const route = routeOf(limiter)
    await route.decide(ALICE)
    expect(await left(route)).toEqual([
      ["login", 1],
      ["rule", 8],
    ])
    expect(await left(limiter)).toEqual([["rule", 8]])
  })

  it("refuse requests while the source's rules are missing if onRulesMissing denies them", async () => {
    const source = new Publisher(new Error("no table"))
    const { limiter } = setUp(source, { onRulesMissing: "deny" })
    const before = routeOf(limiter)
    expect(await before.decide(ALICE)).toMatchObject({ allowed: false, refusal: "store-failure" })
    const after = limiterOfRoute(limiter, { limit: 3, window: "1m" }, "after")
    expect(await after.decide(ALICE)).toMatchObject({ allowed: false, refusal: "store-failure" })
    await source.publish([rule(7)])
    expect([(await left(before)).length, (await left(after)).length]).toEqual([2, 2])
  })

  it("are its own rule and the source's rules, whether the route is created before or after they load", async () => {
    const source = new Publisher([rule(9)])
    const { limiter } = setUp(source)
    const before = routeOf(limiter)
    expect(await before.decide(ALICE)).toMatchObject({ checks: [{ policy: "login" }, { policy: "rule" }] })
    const after = limiterOfRoute(limiter, { limit: 3, window: "1m" }, "after")
    expect(await left(after)).toEqual([
      ["after", 3],
      ["rule", 8],
    ])
    await source.publish([rule(7)])
    expect([await left(before), await left(after)]).toEqual([
      [
        ["login", 1],
        ["rule", 6],
      ],
      [
        ["after", 3],
        ["rule", 6],
      ],
    ])
    await expect(before.ready()).resolves.toBeUndefined()
  })
})

describe("a rule set with many rules", () => {
  const many = (count: number, limit: number): Rule[] =>
    Array.from({ length: count }, (_, index) =>
      rule(limit, { name: `rule-${index}`, match: { path: `/path-${index}` } }),
    )
  const REQUEST: RequestFacts = { ...ALICE, method: "GET", url: "/path-1999" }
  const limitOf = async (limiter: Limiter): Promise<number> => (await limiter.peek(REQUEST)).limit

  it("is compiled in slices, while the previous rules decide requests", async () => {
    const source = new Publisher(many(2_000, 5))
    const { limiter, loaded } = setUp(source)
    await limiter.ready()
    expect(await limitOf(limiter)).toBe(5)
    const limits: number[] = []
    await source.publish(many(2_000, 6), 2)
    while (loaded.length < 2) {
      limits.push(await limitOf(limiter))
      await nextTurn()
    }
    expect(limits.length).toBeGreaterThan(3)
    expect(new Set(limits)).toEqual(new Set([5]))
    expect(await limitOf(limiter)).toBe(6)
  })

  it("is in force when ready and refresh resolve", async () => {
    const source = new Publisher(many(2_000, 5))
    const { limiter } = setUp(source)
    await limiter.ready()
    expect(await limitOf(limiter)).toBe(5)
    const refreshed = limiter.refresh()
    await source.publish(many(2_000, 6), 2)
    await refreshed
    await limiter.refresh()
    expect(await limitOf(limiter)).toBe(6)
  })

  it("delays the first request instead of applying onRulesMissing", async () => {
    const { limiter } = setUp(new Publisher(many(2_000, 5)), { onRulesMissing: "deny" })
    expect(await limiter.decide(REQUEST)).toMatchObject({ allowed: true, limit: 5 })
  })

  it("delays the first request to a new limiter of an already loaded rule book", async () => {
    const book = createRuleBook({
      source: new Publisher(many(2_000, 5)),
      clock: manualClock(),
      logger: QUIET,
    })
    onTestFinished(() => book.close())
    await book.find("default")
    const opened = setUp(book, { onRulesMissing: "allow" })
    await opened.limiter.ready()
    const { limiter } = setUp(book, { store: memoryStore(), onRulesMissing: "deny" })
    expect(await limiter.decide(REQUEST)).toMatchObject({ allowed: true, limit: 5 })
  })

  it("is in force immediately if its source can load synchronously", async () => {
    const rules = many(2_000, 5)
    const source = Object.assign(new Publisher(rules), { loadSync: () => ({ rules, problems: [] }) })
    const guard = createGuard<RequestFacts>({ rules: liveRules(source), logger: QUIET }, (facts) => facts)
    onTestFinished(() => guard.close())
    const outcome = guard.check(REQUEST, REQUEST)
    expect(outcome).not.toBeInstanceOf(Promise)
    expect((await outcome).decision.limit).toBe(5)
  })

  it("is discarded if a newer version arrives before it is compiled", async () => {
    const source = new Publisher([rule(5)])
    const { limiter, loaded } = setUp(source)
    await limiter.ready()
    await source.publish(many(2_000, 6), 2)
    await source.publish([rule(7)], 3)
    for (let turn = 0; turn < 50; turn++) await nextTurn()
    expect(loaded.map(({ version }) => version)).toEqual([undefined, 3])
    expect(await left(limiter)).toEqual([["rule", 7]])
  })

  it("does not come into force after the limiter is closed", async () => {
    const source = new Publisher([rule(5)])
    const { limiter, loaded } = setUp(source)
    await limiter.ready()
    await source.publish(many(2_000, 6), 2)
    await limiter.close()
    for (let turn = 0; turn < 50; turn++) await nextTurn()
    expect(loaded).toHaveLength(1)
  })

  it("applies to a route that was added while the rule set was being compiled", async () => {
    const source = new Publisher(many(2_000, 5))
    const clock = manualClock()
    const guard = createGuard<RequestFacts>(
      { rules: liveRules(source), onRulesMissing: "allow", clock, logger: QUIET },
      (facts) => facts,
    )
    onTestFinished(() => guard.close())
    await guard.limiter.ready()
    await source.publish(many(2_000, 6), 2)
    const own = { name: "own", limit: 100, window: "1m", field: "service" }
    const route = guard.forRoute(own, { label: "GET /path-1999" })
    await guard.limiter.refresh()
    const outcome = await route.check(REQUEST, {} as RequestFacts)
    expect(outcome?.decision.checks.map(({ policy, limit }) => [policy, limit])).toContainEqual([
      "rule-1999",
      6,
    ])
  })
})
