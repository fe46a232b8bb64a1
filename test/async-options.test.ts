import { AsyncLocalStorage, createHook } from "node:async_hooks"
import { setImmediate as nextTurn } from "node:timers/promises"
import {
  type Clock,
  createLimiter,
  decideAll,
  type Limiter,
  type LimiterOptions,
  type RequestFacts,
  type Rule,
} from "@sluice/core"
import { createGuard } from "@sluice/core/adapters"
import { createReplay } from "@sluice/core/replay"
import { type ManualClock, manualClock } from "@sluice/core/testing"
import { liveRules } from "@sluice/rules"
import { describe, expect, it, onTestFinished } from "vitest"
import { changingRules } from "../packages/core/src/http/guard/testing/changing-rules.ts"

type Asker = RequestFacts & { readonly user?: string | undefined; readonly plan?: number }
type Options = LimiterOptions<Asker>

const MINUTE = { window: "1 minute", algorithm: "fixed-window", field: "service" } as const
const ANN: Asker = { user: "ann", plan: 3 }
/** Creates a promise that the test settles. */
function deferred<T>() {
  const settle = { resolve: (_value: T): void => undefined, reject: (_error: Error): void => undefined }
  const promise = new Promise<T>((resolve, reject) => Object.assign(settle, { resolve, reject }))
  return { promise, settle }
}
const never = () => new Promise<never>(() => undefined)
const later = async <T>(value: T): Promise<T> => {
  await nextTurn()
  return value
}

/** Creates a limiter on a clock that does not advance. Also returns the limiter's warnings. */
function limited(options: Partial<Options>, clock: Clock = manualClock()) {
  const limiter: Limiter<Asker> = createLimiter<Asker>({
    ...{ clock, logger: { warn() {}, error() {} } },
    ...options,
  } as Options)
  onTestFinished(() => limiter.close())
  const warned: string[] = []
  limiter.on("warning", ({ code, message }) => warned.push(`${code}: ${message}`))
  return { limiter, warned, clock: clock as ManualClock }
}

/** Resolves a decision that waits for a function, by moving the clock past the timeout. */
async function afterDeadline<T>(clock: ManualClock, decision: Promise<T>, ms = 1_000): Promise<T> {
  await nextTurn()
  clock.advance(ms)
  return decision
}

const ofUser = { field: "user", fields: { user: ({ user }: Asker) => user } }

describe("functions that return values", () => {
  const options = {
    ...{ ...MINUTE, ...ofUser, clock: manualClock() },
    limit: ({ plan = 0 }: Asker) => plan,
    cost: () => 2,
    skip: () => false,
    match: () => true,
  }

  it("let a guard decide in the same turn of the event loop, without creating a promise", async () => {
    const guard = createGuard<Asker>(options)
    await nextTurn()
    let promises = 0
    const hook = createHook({
      init(_id, type) {
        if (type === "PROMISE") promises++
      },
    })
    const request: Asker = { ...ANN }
    hook.enable()
    const outcome = guard.check({}, request)
    hook.disable()
    expect(outcome).toMatchObject({ decision: { limit: 3, remaining: 1, cost: 2 } })
    expect(promises).toBe(0)
    await guard.close()
  })

  it("let a guard decide in the same turn of the event loop, even if a value is invalid", async () => {
    const logger = { warn() {}, error() {} }
    const guard = createGuard<Asker>({ ...options, logger, cost: () => ({}) as never })
    expect(guard.check({}, { ...ANN })).toMatchObject({ decision: { cost: 1 } })
    await guard.close()
  })

  it("are called once per decision, in a fixed order", async () => {
    const called: string[] = []
    const named = <T>(name: string, value: T) => {
      return () => {
        called.push(name)
        return value
      }
    }
    const { limiter } = limited({
      ...MINUTE,
      limit: named("limit", 3),
      cost: named("cost", 1),
      skip: named("skip", false),
      field: "user",
      match: { fields: { plan: ["pro"] }, when: named("match", true) },
      fields: { user: named("user", "ann"), plan: named("plan", "pro") },
    })
    await limiter.decide({})
    expect(called).toEqual(["skip", "cost", "plan", "match", "user", "limit"])
  })
})

describe("functions that return promises", () => {
  it("lead to the same decisions as functions that return values", async () => {
    const options = { ...MINUTE, ...ofUser, limit: ({ plan = 0 }: Asker) => plan, cost: () => 2 }
    const { limiter } = limited({
      ...options,
      fields: { user: async ({ user }) => later(user) },
      limit: async ({ plan = 0 }) => later(plan),
      cost: async () => later(2),
      skip: async ({ user }) => later(user === "root"),
      match: async ({ user }) => later(user !== "guest"),
    })
    const { limiter: atOnce } = limited({
      ...options,
      skip: ({ user }) => user === "root",
      match: ({ user }) => user !== "guest",
    })
    const allowed: unknown[] = []
    for (const user of ["ann", "ann", "root", "guest", "bob", undefined]) {
      const decision = await limiter.decide({ user, plan: 3 })
      expect(decision).toEqual(await atOnce.decide({ user, plan: 3 }))
      allowed.push([decision.allowed, decision.policy])
    }
    expect(allowed).toEqual([
      [true, "user-1m"],
      [false, "user-1m"],
      [true, ""],
      [true, ""],
      [true, "user-1m"],
      [true, "user-1m"],
    ])
  })

  it("are called once per decision, after the functions whose results decide whether they are needed", async () => {
    const called: string[] = []
    const named = <T>(name: string, value: T) => {
      return () => {
        called.push(name)
        return value
      }
    }
    const user = named("user", later("ann"))
    const { limiter } = limited({
      rules: [
        {
          name: "a",
          ...MINUTE,
          field: "user",
          limit: named("a", later(3)),
          match: { fields: { plan: ["pro"] } },
        },
        {
          name: "b",
          ...MINUTE,
          field: ["user", "org"],
          limit: named("b", 3),
          match: named("match", later(true)),
        },
        { name: "c", ...MINUTE, field: "user", limit: named("c", 3), match: { fields: { plan: ["free"] } } },
      ],
      cost: named("cost", later(1)),
      skip: named("skip", later(false)),
      fields: { user, plan: named("plan", "pro"), org: named("org", later("acme")) },
    })
    const { checks } = await limiter.decide({})
    expect(checks.map(({ policy }) => policy)).toEqual(["a", "b"])
    // One rule does not wait for another. Functions of a rule are called only if they are needed.
    expect(called.slice(0, 3)).toEqual(["skip", "cost", "plan"])
    expect([...called].sort()).toEqual(["a", "b", "cost", "match", "org", "plan", "skip", "user"])
    const isBefore = (one: string, other: string) => called.indexOf(one) < called.lastIndexOf(other)
    expect([isBefore("user", "a"), isBefore("match", "org"), isBefore("org", "b")]).toEqual([
      true,
      true,
      true,
    ])
  })

  it("can exempt a request through skip, allow or onMissing, so that limit is not called", async () => {
    const limit = () => expect.unreachable()
    const { limiter } = limited({
      rules: [
        { name: "a", ...MINUTE, field: "user", allow: ["ann"], limit },
        { name: "b", ...MINUTE, field: "org", onMissing: "skip", limit },
      ],
      fields: { user: async () => "ann", org: async () => undefined },
      skip: async ({ user }) => user === "root",
    })
    expect(await limiter.decide(ANN)).toMatchObject({ allowed: true, policy: "" })
    const { limiter: skipping } = limited({ ...MINUTE, limit, cost: limit, skip: async () => true })
    expect(await skipping.decide(ANN)).toMatchObject({ allowed: true, policy: "" })
  })

  it("keep the process alive until they settle or time out", async () => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length
    const clock = { now: () => 0 }
    const { limiter } = limited({ ...MINUTE, limit: 3, cost: never, callbackTimeoutMs: 1 }, clock)
    const before = timers()
    const deciding = limiter.decide({})
    expect(timers()).toBe(before + 1)
    await deciding
  })

  it("may return any thenable, and may return a plain value in some calls", async () => {
    // biome-ignore lint/suspicious/noThenProperty: libraries return thenables
    const thenable = { then: (resolve: (value: number) => void) => resolve(5) }
    const callable = Object.assign(() => 0, thenable) as unknown as PromiseLike<number>
    const limits = [thenable as PromiseLike<number>, 4, Promise.resolve(3), callable]
    const { limiter } = limited({ ...MINUTE, field: "service", limit: () => limits.shift() ?? 0 })
    const seen = []
    for (let i = 0; i < 4; i++) seen.push((await limiter.peek({})).limit)
    expect(seen).toEqual([5, 4, 3, 5])
  })

  it("run in the async context of their request, like the code after the decision", async () => {
    const storage = new AsyncLocalStorage<string>()
    const seen: unknown[] = []
    const { limiter } = limited({
      ...MINUTE,
      field: "user",
      fields: { user: async () => later(storage.getStore()) },
      limit: () => {
        seen.push(storage.getStore())
        return 3
      },
    })
    const decide = async () => {
      await limiter.decide({})
      seen.push(storage.getStore())
    }
    await Promise.all(["a", "b"].map((name) => storage.run(name, decide)))
    expect(seen.sort()).toEqual(["a", "a", "b", "b"])
    expect((await limiter.explain({}))[0]?.counter?.partition).toBe("@shared")
  })
})

const LATE = "did not settle within 1000 ms"

describe("a function that fails", () => {
  const failures: [string, string, () => unknown][] = [
    ["rejects", "failed: Error: gone", () => Promise.reject(new Error("gone"))],
    ["resolves to an invalid value", "returned null", async () => null],
    ["never settles", LATE, never],
    ["returns a broken thenable", "failed: Error: broken", () => brokenThenable],
  ]
  const brokenThenable = {
    // biome-ignore lint/suspicious/noThenProperty: libraries return thenables
    get then() {
      throw new Error("broken")
    },
  }

  it.each(failures)("leads to a cost of 1 if cost %s", async (_how, what, cost) => {
    const { limiter, warned, clock } = limited({ ...MINUTE, limit: 3, cost: cost as () => number })
    expect(await afterDeadline(clock, limiter.decide({}))).toMatchObject({ cost: 1, remaining: 2 })
    expect(warned[0]).toMatch(
      `SLUICE_INVALID_COST: The cost function ${what}. It must return 0 or a positive whole number`,
    )
  })

  it.each([...[-1, 1.5, Number.NaN, -Infinity], "99999999999999999"])(
    "leads to a cost of 1 if cost returns %o",
    async (units) => {
      const { limiter, warned } = limited({ ...MINUTE, limit: 3, cost: () => units as number })
      expect(await limiter.decide({})).toMatchObject({ cost: 1, remaining: 2 })
      expect(warned[0]).toMatch("SLUICE_INVALID_COST: The cost function returned ")
    },
  )

  it.each([2 ** 53, Number.POSITIVE_INFINITY])(
    "leads to a refusal, not to a cost of 1, if cost returns %s",
    async (units) => {
      const { limiter, warned } = limited({ ...MINUTE, limit: 3, cost: () => units })
      expect(await limiter.decide({})).toMatchObject({ allowed: false, refusal: "cost" })
      expect(warned).toEqual([])
    },
  )

  it.each(failures)("does not skip the request if skip %s", async (_how, what, skip) => {
    const { limiter, warned, clock } = limited({ ...MINUTE, limit: 3, skip: skip as () => boolean })
    expect(await afterDeadline(clock, limiter.decide({}))).toMatchObject({ remaining: 2 })
    expect(warned[0]).toMatch(
      `SLUICE_CALLBACK_FAILED: skip ${what}. It must return true or false, or a promise`,
    )
  })

  it.each(failures)("does not exclude the rule if match %s", async (_how, what, when) => {
    const { limiter, warned, clock } = limited({
      ...MINUTE,
      limit: 3,
      match: { when: when as () => boolean },
    })
    expect(await afterDeadline(clock, limiter.decide({}))).toMatchObject({ remaining: 2 })
    expect(warned[0]).toMatch(
      `SLUICE_CALLBACK_FAILED: match of rule "service-1m" ${what}. It must return true or false, or a promise of it; otherwise the rule applies.`,
    )
  })

  it.each(failures)(
    "makes its field missing if it is a member of fields and %s",
    async (_how, what, user) => {
      const options = { ...MINUTE, limit: 3, field: "user", onMissing: "deny" } as const
      const { limiter, warned, clock } = limited({ ...options, fields: { user: user as () => string } })
      expect(await afterDeadline(clock, limiter.decide({}))).toMatchObject({ refusal: "missing-field" })
      // A client may send no value at all, so null means that the field is missing and causes no warning.
      if (what === "returned null") expect(warned).toEqual([])
      else
        expect(warned[0]).toMatch(
          `SLUICE_EXTRACTOR_FAILED: The function of field "user" ${what}. Rules that count by the field treat it as missing.`,
        )
    },
  )

  it.each(failures)(
    "leaves the latest valid limit in force if limit %s, and causes refusals before the first valid limit",
    async (_how, what, limit) => {
      let isSound = false
      const { limiter, warned, clock } = limited({
        ...MINUTE,
        limit: () => (isSound ? later(3) : (limit() as Promise<number>)),
      })
      expect(await afterDeadline(clock, limiter.decide({}))).toMatchObject({
        ...{ allowed: false, refusal: "store-failure", retryAfterMs: 1_000, degraded: false },
      })
      isSound = true
      await limiter.decide({})
      isSound = false
      expect(await afterDeadline(clock, limiter.decide({}))).toMatchObject({
        allowed: true,
        limit: 3,
        remaining: 1,
      })
      expect(warned).toHaveLength(1)
      expect(warned[0]).toMatch(
        `SLUICE_INVALID_LIMIT: The limit function of rule "service-1m" ${what}. It must return`,
      )
    },
  )

  it("times out after callbackTimeoutMs on the limiter's clock, and its later result has no effect", async () => {
    const unhandled: unknown[] = []
    const listen = (reason: unknown): number => unhandled.push(reason)
    process.on("unhandledRejection", listen)
    const { promise, settle } = deferred<number>()
    const { limiter, clock } = limited({ ...MINUTE, limit: 3, cost: () => promise, callbackTimeoutMs: 20 })
    let isDecided = false
    const deciding = limiter.decide({}).then((decision) => {
      isDecided = true
      return decision
    })
    await nextTurn()
    clock.advance(19)
    await nextTurn()
    expect(isDecided).toBe(false)
    clock.advance(1)
    expect(await deciding).toMatchObject({ cost: 1 })
    settle.reject(new Error("late"))
    await nextTurn()
    process.off("unhandledRejection", listen)
    expect(unhandled).toEqual([])
  })

  it.each<[string, Clock["wait"]]>([
    ["cannot wait", undefined],
    [
      "throws",
      () => {
        throw new Error("broken")
      },
    ],
  ])(
    "times out after callbackTimeoutMs, measured by a system timer, if the limiter's clock %s",
    async (_how, wait) => {
      const clock = { now: () => 0, wait }
      const { limiter, warned } = limited({ ...MINUTE, limit: 3, cost: never, callbackTimeoutMs: 1 }, clock)
      expect(await limiter.decide({})).toMatchObject({ cost: 1 })
      expect(warned[0]).toContain("did not settle within 1 ms")
    },
  )
})

describe("asynchronous functions", () => {
  const options = {
    ...{ ...MINUTE, name: "user", field: "user", limit: async () => 3 },
    fields: { user: async ({ user }: Asker) => later(user) },
  }

  it("work with takeUpTo, enforce, acquire, peek and explain", async () => {
    const { limiter } = limited(options)
    expect(await limiter.takeUpTo(ANN, 2)).toMatchObject({ cost: 2, remaining: 1 })
    expect(await limiter.acquire(ANN)).toMatchObject({ remaining: 0 })
    await expect(limiter.enforce(ANN)).rejects.toThrow('Refused by rate limit "user"')
    expect(await limiter.peek(ANN)).toMatchObject({ allowed: false })
    expect(await limiter.peek({ user: "bob" }, { rules: ["user"] })).toMatchObject({ remaining: 3 })
    expect((await limiter.explain(ANN))[0]).toMatchObject({ applies: true, counter: { partition: "ann" } })
    expect((await limiter.explain(ANN, { rules: ["user"] }))[0]).toMatchObject({
      counter: { partition: "ann" },
    })
  })

  it("can exclude a rule for any reason, which explain then reports", async () => {
    const rules: Rule<Asker>[] = [
      { name: "when", ...MINUTE, limit: 3, field: "user", match: async () => false },
      { name: "field", ...MINUTE, limit: 3, field: "user", match: { fields: { user: ["bob"] } } },
      { name: "allow", ...MINUTE, limit: 3, field: "user", allow: ["ann"] },
      { name: "limit", ...MINUTE, limit: async () => Number.POSITIVE_INFINITY, field: "user" },
    ]
    const { limiter } = limited({ rules, fields: options.fields })
    expect((await limiter.explain(ANN)).map(({ mismatches }) => mismatches)).toEqual([
      [{ member: "match.when" }],
      [{ member: "match.fields", field: "user", value: "ann" }],
      [{ member: "allow", field: "user", value: "ann" }],
      [{ member: "limit" }],
    ])
    expect((await limiter.explain(ANN, { rules: ["when"] }))[0]).toMatchObject({ applies: true })
  })

  it("work with reset, block and unblock", async () => {
    const { limiter } = limited(options)
    await limiter.takeUpTo(ANN, 3)
    await limiter.reset(ANN)
    expect(await limiter.peek(ANN)).toMatchObject({ remaining: 3 })
    await limiter.block(ANN, { for: "1 hour" })
    expect([await limiter.peek(ANN), await limiter.peek({ user: "bob" })]).toMatchObject([
      { refusal: "blocked" },
      { allowed: true },
    ])
    await limiter.unblock(ANN)
    expect(await limiter.peek(ANN)).toMatchObject({ remaining: 3 })
  })

  it("work with decideAll", async () => {
    const { limiter } = limited(options)
    const { allowed, decisions } = await decideAll([{ limiter, request: ANN, cost: 2 }])
    expect([allowed, decisions[0]?.remaining]).toEqual([true, 1])
  })

  it("make a replay throw", () => {
    const replay = createReplay({
      rules: [{ field: "user", limit: 3, window: "1m" }],
      fields: { user: never },
    })
    expect(() => replay.offer({ atMs: 0 })).toThrow(
      "a function in `fields` or in a rule returned a promise, and a replay does not wait",
    )
  })
})

describe("while a function is pending", () => {
  it("the decision event is delayed, and its duration includes the wait", async () => {
    const { limiter } = limited({ ...MINUTE, limit: 3, skip: async () => later(false) })
    const events: string[] = []
    limiter.on("decision", (_decision, _request, { operation, durationMs }) => {
      events.push(`${operation} ${durationMs > 0}`)
    })
    await limiter.decide({})
    expect(events).toEqual(["decide true"])
  })

  it("acquire can be aborted", async () => {
    const { limiter } = limited({ ...MINUTE, limit: 3, cost: never })
    const leaving = new AbortController()
    const acquiring = limiter.acquire({}, { signal: leaving.signal })
    leaving.abort(new Error("left"))
    await expect(acquiring).rejects.toThrow("left")
  })

  it("closing the limiter makes acquire reject, but decide still resolves without the store", async () => {
    const { limiter, clock } = limited({ ...MINUTE, limit: 3, cost: never })
    const deciding = limiter.decide({})
    const acquiring = limiter.acquire({})
    acquiring.catch(() => undefined)
    await limiter.close()
    expect(await afterDeadline(clock, deciding)).toMatchObject({ allowed: true, degraded: true })
    await expect(acquiring).rejects.toThrow("The limiter has been closed.")
  })

  it("new rules apply to a queued request if its fields are known; otherwise the previous rules apply", async () => {
    const read: string[] = []
    const fields = {
      user: async () => {
        read.push("user")
        return "ann"
      },
      org: async () => {
        read.push("org")
        return "acme"
      },
    }
    const { source, publish } = changingRules([{ ...MINUTE, name: "a", field: "user", limit: 1 }])
    const { limiter } = limited({ rules: liveRules(source), onRulesMissing: "allow", fields })
    await limiter.decide({})
    read.length = 0
    const [first, second] = [limiter.acquire({}), limiter.acquire({})]
    await nextTurn()
    await publish([{ ...MINUTE, name: "a", field: "user", limit: 2 }])
    expect(await first).toMatchObject({ limit: 2, remaining: 0 })
    expect(read).toEqual(["user", "user"])
    await publish([{ ...MINUTE, name: "b", field: "org", limit: 9 }])
    expect(read).toEqual(["user", "user", "org"])
    await limiter.reset({}, { rules: [] })
    await limiter.close()
    await expect(second).rejects.toThrow("closed")
  })
})
