import { setImmediate as nextTurn } from "node:timers/promises"
import { liveRules } from "@sluice/rules"
import { describe, expect, it, onTestFinished } from "vitest"
import { RateLimitExceededError } from "../../decision/decision.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import { createLimiter } from "../../limiter/create-limiter.ts"
import type { AcquireOptions, Limiter } from "../../limiter/interface/limiter.ts"
import type { LimiterOptions, LimiterSettings } from "../../limiter/options/options.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { Rule } from "../../rules/rule.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import type { Store } from "../../stores/store.ts"
import { methodsOf } from "../../stores/testing/methods-of.ts"
import { createGuard } from "./create-guard.ts"
import type { Outcome } from "./mount-outcome.ts"
import { changingRules } from "./testing/changing-rules.ts"
import { limiterOfRoute } from "./testing/limiter-of-route.ts"

const SECOND = 1_000
const HOUR = 3_600 * SECOND
const QUIET = { warn() {}, error() {} }
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const BOB: RequestFacts = { remoteAddress: "192.0.2.2" }

const hourly = (limit: number, more: Partial<Rule> = {}): Rule => {
  return { name: "hourly", limit, window: "1 hour", algorithm: "fixed-window", field: "ip", ...more } as Rule
}
const queueing = (limit: number, more: Partial<Rule> = {}): Rule =>
  hourly(limit, { throttle: { kind: "queue", maxWaiting: 9, maxWaitMs: 2 * HOUR }, ...more })
const leaky = (limit: number, more: Partial<Rule> = {}): Rule =>
  ({ name: "leaky", limit, window: "1 hour", algorithm: "leaky-bucket", burst: 5, ...more }) as Rule

/** Creates a clock, a store that delays takes while `isSlow` is set, and rules that the test changes. */
function setting(first: readonly Rule[]) {
  const clock = manualClock()
  const inner = memoryStore({ clock })
  const store = { isSlow: false, takes: 0 }
  const pending: (() => void)[] = []
  const port: Store = {
    ...methodsOf(inner),
    take(checks): MaybePromise<ReturnType<typeof inner.take>> {
      store.takes++
      const answers = inner.take(checks)
      if (!store.isSlow) return answers
      return new Promise((resolve) => pending.push(() => resolve(answers)))
    },
  }
  const { source, publish } = changingRules(first)
  const answer = async () => {
    pending.shift()?.()
    await nextTurn()
  }
  const pass = async (ms: number, stepMs: number) => {
    await nextTurn()
    for (let passed = 0; passed < ms; passed += stepMs) {
      clock.advance(stepMs)
      await nextTurn()
    }
  }
  const options = {
    rules: liveRules(source),
    onRulesMissing: "allow" as const,
    clock,
    store: port,
    storeTimeoutMs: 60_000,
    logger: QUIET,
  }
  return { clock, store, pending, publish, answer, pass, options }
}

/** Logs when each waiter is admitted, in seconds from the start, or which rule refuses it. */
async function acquiring(
  first: readonly Rule[],
  more: Omit<LimiterSettings<RequestFacts>, "limit" | "window" | "per"> = {},
) {
  const { options, ...rest } = setting(first)
  const limiter = createLimiter<RequestFacts>({ ...options, ...more })
  onTestFinished(() => limiter.close())
  await limiter.ready()
  const log: string[] = []
  const startMs = rest.clock.now()
  const acquire = (
    name: string,
    how: AcquireOptions = {},
    who: RequestFacts = ALICE,
    from: Limiter<RequestFacts> = limiter,
  ) => {
    const write = (what: string) => void log.push(`${(rest.clock.now() - startMs) / SECOND} ${name}${what}`)
    from.acquire(who, how).then(
      () => write(""),
      (error: unknown) =>
        write(error instanceof RateLimitExceededError ? `: ${error.decision.policy}` : `: ${error}`),
    )
  }
  return { ...rest, limiter, log, acquire }
}

describe("a request that waits while the rules of a source change", () => {
  it("is admitted immediately and in order when the limit is raised, until the new limit is reached", async () => {
    const { limiter, publish, pass, log, acquire } = await acquiring([hourly(2)])
    await limiter.decide(ALICE, { cost: 2 })
    acquire("a", { cost: 2 })
    for (const name of ["b", "c", "d"]) acquire(name)
    await pass(10 * SECOND, SECOND)
    await publish([hourly(5)])
    expect(log).toEqual(["10 a", "10 b"])
    acquire("e")
    await pass(HOUR - 10 * SECOND, 10 * SECOND)
    expect(log.slice(2)).toEqual(["3600 c", "3600 d", "3600 e"])
  })

  it.each<[string, Partial<Rule>]>([
    ["window", { window: "2 hours" }],
    ["algorithm", { algorithm: "token-bucket" }],
    ["field", { field: "service" }],
    ["name", { name: "other" }],
  ])("moves to the new counter in order if the %s of its rule changes", async (_what, more) => {
    const { limiter, publish, log, acquire } = await acquiring([hourly(2)])
    await limiter.decide(ALICE, { cost: 2 })
    acquire("a", { cost: 2 })
    acquire("b", {}, { ...ALICE })
    await publish([hourly(2, more)])
    expect(log).toEqual(["0 a"])
  })

  it("is reported with the counter of the new rule", async () => {
    const { limiter, publish, log, acquire } = await acquiring([queueing(2)])
    const counters: string[] = []
    limiter.on("decision", (_decision, _request, call) => {
      for (const { policy, partition } of call.counters) counters.push(`${policy.name} ${partition}`)
    })
    await limiter.decide(ALICE, { cost: 2 })
    acquire("a")
    const guard = createGuard({ limiter })
    await nextTurn()
    const held = guard.check(ALICE, {})
    await publish([queueing(2, { field: "service" })])
    await held
    expect(log).toEqual(["0 a"])
    expect(counters).toEqual(["hourly 192.0.2.1", "hourly ", "hourly "])
  })

  it("no longer waits for a removed rule, and is decided by the remaining rules", async () => {
    const { limiter, publish, log, acquire } = await acquiring([hourly(2), leaky(3600)])
    await limiter.decide(ALICE, { cost: 2 })
    acquire("a")
    acquire("dear", { cost: 2 })
    acquire("b")
    await publish([hourly(2, { name: "other", limit: 1 })])
    expect(log.sort()).toEqual(["0 a", "0 dear: other"])
    await publish([])
    expect(log.slice(2)).toEqual(["0 b"])
  })

  it("waits for a new rule, as a new request does", async () => {
    const { limiter, publish, pass, log, acquire } = await acquiring([hourly(2)])
    await limiter.decide(ALICE, { cost: 2 })
    for (const name of ["a", "b"]) acquire(name)
    const minutely = hourly(1, { name: "minutely", window: "1 minute" })
    await publish([hourly(9), minutely])
    expect(log).toEqual(["0 a"])
    await pass(60 * SECOND, 10 * SECOND)
    expect(log.slice(1)).toEqual(["60 b"])
  })

  it("is refused immediately by a new rule that denies it, even behind other requests", async () => {
    const all = hourly(1, { field: "service" })
    const { publish, pass, log, acquire } = await acquiring([all])
    for (const name of ["a", "first"]) acquire(name)
    acquire("denied", {}, BOB)
    await publish([all, hourly(9, { name: "list", deny: ["192.0.2.2"] })])
    expect(log).toEqual(["0 a", "0 denied: list"])
    await pass(HOUR, 60 * SECOND)
    expect(log.slice(2)).toEqual(["3600 first"])
  })

  it("waits no longer than its original maximum", async () => {
    const { limiter, publish, pass, log, acquire } = await acquiring([hourly(2)])
    await limiter.decide(ALICE, { cost: 2 })
    acquire("first", { maxWaitMs: 1.5 * HOUR })
    acquire("second", { maxWaitMs: 1.25 * HOUR })
    acquire("patient")
    await pass(0.5 * HOUR, 60 * SECOND)
    expect(log).toEqual([])
    // The new windows end in an hour and a half.
    await publish([hourly(2, { window: "2 hours" }), hourly(1, { name: "twice", window: "2 hours" })])
    expect(log).toEqual(["1800 first", "1800 second: twice"])
    await pass(1.5 * HOUR, 60 * SECOND)
    expect(log.slice(2)).toEqual(["7200 patient"])
  })

  it("is refused at the end of its maximum wait if others precede it in the new counter", async () => {
    const { limiter, store, answer, publish, pass, log, acquire } = await acquiring([hourly(2)])
    await limiter.decide(ALICE, { cost: 2 })
    await limiter.decide(BOB, { cost: 2 })
    acquire("alice", {}, ALICE)
    acquire("bob", { maxWaitMs: HOUR }, BOB)
    store.isSlow = true
    await publish([hourly(1, { field: "service" })])
    // The waiters call the store one by one, not all at the same time.
    expect(store.takes).toBe(2 + 2 + 1)
    await pass(HOUR + SECOND, SECOND)
    expect(log).toEqual(["3601 bob: hourly"])
    await answer()
    expect(log.slice(1)).toEqual(["3601 alice"])
  })

  it("finishes a pending decision under the old rules, and then waits under the new rules", async () => {
    const { limiter, store, pending, answer, publish, pass, log, acquire } = await acquiring([hourly(2)])
    await limiter.decide(ALICE)
    store.isSlow = true
    acquire("granted")
    acquire("asking")
    acquire("behind it", { cost: 2 })
    await nextTurn()
    await publish([hourly(2, { window: "30 minutes" })])
    acquire("late")
    expect(pending).toHaveLength(4)
    store.isSlow = false
    for (let i = 0; i < 4; i++) await answer()
    expect(log).toEqual(["0 granted", "0 late", "0 asking"])
    await pass(HOUR / 2, 60 * SECOND)
    expect(log.slice(3)).toEqual(["1800 behind it"])
  })

  it("proceeds immediately after a pending grant if the rule that delays it was removed", async () => {
    const { store, answer, publish, pass, log, acquire } = await acquiring([leaky(3600), hourly(9)])
    acquire("a")
    store.isSlow = true
    for (const name of ["b", "impatient"]) acquire(name, { maxWaitMs: name === "b" ? HOUR : SECOND })
    await nextTurn()
    await publish([hourly(9)])
    for (let i = 0; i < 2; i++) await answer()
    expect(log).toEqual(["0 a", "0 b", "0 impatient"])
    store.isSlow = false
    await publish([leaky(3600), hourly(9)])
    store.isSlow = true
    acquire("c")
    await nextTurn()
    // The rule still exists, with another limit.
    await publish([leaky(7200), hourly(9)])
    await answer()
    expect(log.slice(3)).toEqual([])
    await pass(3 * SECOND, SECOND)
    expect(log.slice(3)).toEqual(["3 c"])
  })

  it("continues to wait under its old rules if its properties can no longer be read", async () => {
    const { limiter, publish, pass, log, acquire } = await acquiring([hourly(2)])
    let isBroken = false
    const breaking: RequestFacts = {
      ...ALICE,
      get method() {
        if (isBroken) throw new Error("gone")
        return "POST"
      },
    }
    await limiter.decide(ALICE, { cost: 2 })
    acquire("broken", {}, breaking)
    await limiter.decide(BOB, { cost: 2 })
    acquire("sound", {}, BOB)
    await nextTurn()
    isBroken = true
    await publish([hourly(4)])
    expect(log).toEqual(["0 sound"])
    await pass(HOUR, 60 * SECOND)
    expect(log.slice(1)).toEqual(["3600 broken"])
  })

  it("causes no additional store calls if it becomes unreadable during a pending decision", async () => {
    const { store, answer, publish, pass, log, acquire } = await acquiring([hourly(2)])
    let isBroken = false
    const breaking: RequestFacts = {
      ...ALICE,
      get method() {
        if (isBroken) throw new Error("gone")
        return "POST"
      },
    }
    acquire("other", { cost: 2 })
    store.isSlow = true
    acquire("broken", {}, breaking)
    await nextTurn()
    isBroken = true
    await publish([hourly(4)])
    // After a refusal the waiter calls the store once more, because its checks may be out of date. Then it sleeps.
    for (let i = 0; i < 9; i++) await answer()
    expect([log, store.takes]).toEqual([["0 other"], 3])
    store.isSlow = false
    await pass(HOUR, 60 * SECOND)
    expect([log.slice(1), store.takes]).toEqual([["3600 broken"], 4])
  })

  it("rejects without a store call if reading its properties closes the limiter", async () => {
    const { limiter, publish, log, acquire, store } = await acquiring([hourly(2)])
    let isClosing = false
    const closing: RequestFacts = {
      get remoteAddress() {
        if (isClosing) void limiter.close()
        return "192.0.2.1"
      },
    }
    await limiter.decide(ALICE, { cost: 2 })
    acquire("closing", {}, closing)
    acquire("other")
    await nextTurn()
    isClosing = true
    const { takes } = store
    await publish([hourly(4)])
    expect([log.map((entry) => entry.split(" ")[1]), store.takes]).toEqual([["closing:", "other:"], takes])
  })

  it("is admitted immediately on a route when the source raises the limit", async () => {
    const { limiter, publish, log, acquire } = await acquiring([hourly(2)])
    const own = { name: "own", limit: 9, window: "1 hour", field: "ip" }
    const route = limiterOfRoute(limiter, own, "own")
    await limiter.decide(ALICE, { cost: 2 })
    acquire("on the route", {}, ALICE, route)
    await nextTurn()
    await publish([hourly(3)])
    expect(log).toEqual(["0 on the route"])
  })
})

describe("a request that a guard holds while the rules of a source change", () => {
  async function holding(first: readonly Rule[]) {
    const { options, ...rest } = setting(first)
    const guard = createGuard<object>(options as LimiterOptions<object>)
    await guard.limiter.ready()
    // In the event loop turn of its creation, a guard assumes that a request handler created it.
    await nextTurn()
    const check = (facts: RequestFacts = ALICE) => guard.check(facts, {})
    const policies = ({ headers }: Outcome) =>
      headers.filter(([name]) => name === "RateLimit-Policy").map(([, value]) => value)
    return { ...rest, guard, check, policies }
  }

  it("proceeds when the limit is raised, with headers that contain the new limit", async () => {
    const { publish, check, policies } = await holding([queueing(1)])
    await check()
    const held = check()
    await publish([queueing(2)])
    const outcome = await held
    expect(outcome.decision).toMatchObject({ allowed: true, limit: 2, remaining: 0 })
    expect(policies(outcome)).toEqual(['"hourly";q=2;w=3600'])
  })

  it("is refused if the rule no longer queues", async () => {
    const { publish, check, policies } = await holding([queueing(1)])
    await check()
    const held = check()
    await publish([hourly(1, { rejectionMessage: "slower" })])
    const outcome = await held
    expect(outcome.decision).toMatchObject({ allowed: false, refusal: "quota", policy: "hourly" })
    expect(outcome.rejection?.body).toContain('"rejection":"slower"')
    expect(policies(outcome)).toEqual(['"hourly";q=1;w=3600'])
  })

  it("is admitted without headers if no rule is left", async () => {
    const { publish, check } = await holding([queueing(1)])
    await check()
    const held = check()
    await publish([])
    expect(await held).toMatchObject({ decision: { allowed: true, policy: "" }, headers: [] })
  })

  it("gets the headers of the rules that decided it, even if the rules change during the decision", async () => {
    const { store, answer, publish, check, policies } = await holding([queueing(2)])
    store.isSlow = true
    const asked = check()
    await publish([queueing(5)])
    await answer()
    expect(policies(await asked)).toEqual(['"hourly";q=2;w=3600'])
  })

  it("is refused with 503 when the guard is closed, and its decision names the current rules", async () => {
    const { guard, publish, check } = await holding([queueing(1)])
    await check()
    const held = check()
    await publish([queueing(1, { name: "renamed" }), queueing(1)])
    await guard.close()
    const { decision } = await held
    expect([decision.refusal, decision.checks.map(({ policy }) => policy)]).toEqual([
      "store-failure",
      ["renamed", "hourly"],
    ])
  })
})
