import { EventEmitter } from "node:events"
import { setImmediate as nextTurn } from "node:timers/promises"
import { liveRules } from "@sluice/rules"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { StoreUnavailableError } from "../../ground/errors.ts"
import { type ManualClock, manualClock } from "../../ground/manual-clock.ts"
import { createLimiter } from "../../limiter/create-limiter.ts"
import { decisionOn, MARK, type Marked } from "../../limiter/interface/mount-decision.ts"
import { HEADER_DIALECTS } from "../../limiter/options/header-formats.ts"
import type { LimiterOptions, LimiterSettings } from "../../limiter/options/options.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { RateRule, Rule } from "../../rules/rule.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import type { Store } from "../../stores/store.ts"
import { laterStore } from "../../stores/testing/later-store.ts"
import { methodsOf } from "../../stores/testing/methods-of.ts"
import { createGuard } from "./create-guard.ts"
import type { Guard } from "./guard.ts"
import type { Outcome } from "./mount-outcome.ts"
import { changingRules } from "./testing/changing-rules.ts"

interface Req {
  user?: string
}

const FACTS: RequestFacts = { method: "GET", url: "/", headers: {}, remoteAddress: "192.0.2.1" }
const QUIET = { warn() {}, error() {} }
const RESPONSE = Object.assign(new EventEmitter(), { headersSent: false })

const address = (limit: number, more: Partial<RateRule<Req>> = {}): RateRule<Req> => ({
  name: "address",
  field: "ip",
  limit,
  window: "1m",
  ...more,
})
const user = (limit: number, more: Partial<RateRule<Req>> = {}): RateRule<Req> => ({
  name: "user",
  field: "user",
  limit,
  window: "1m",
  ...more,
})

async function mount(options: LimiterSettings<Req>, clock: ManualClock = manualClock()) {
  const fields = { user: (request: Req) => request.user }
  const guard = createGuard<Req>({ clock, logger: QUIET, fields, ...options } as LimiterOptions<Req>)
  await Promise.resolve()
  return guard
}

/** The final headers and status of a response. */
interface Told {
  readonly headers: Record<string, string>
  readonly status: number
  readonly request: Req
}

function apply(outcome: Outcome, headers: Record<string, string>): number {
  for (const name of outcome.removed) delete headers[name]
  for (const [name, value] of outcome.headers) headers[name] = value
  return outcome.rejection?.status ?? 200
}

/** Checks in two steps with authentication between them, as an adapter does, or once after authentication. */
async function ask(
  guard: Guard<Req>,
  name: string | undefined,
  steps: "stepped" | "together",
): Promise<Told> {
  const request: Req = {}
  const headers: Record<string, string> = {}
  let status = 200
  for (const step of steps === "stepped" ? (["arrival", "app"] as const) : [undefined]) {
    if (step !== "arrival" && name !== undefined) request.user = name
    const outcome = (await guard.check(FACTS, request, RESPONSE, step)) as Outcome
    status = apply(outcome, headers)
    if (status !== 200) break
  }
  return { headers, status, request }
}

describe("a guard that decides in steps", () => {
  it("makes the same decisions as a guard that decides once after authentication", async () => {
    const rule = fc.record({
      limit: fc.integer({ min: 1, max: 6 }),
      cost: fc.integer({ min: 1, max: 2 }),
      algorithm: fc.constantFrom("sliding-window", "fixed-window", "token-bucket", "sliding-log"),
    })
    const trace = fc.array(
      fc.record({ name: fc.constantFrom("a", "b", undefined), waitMs: fc.constantFrom(0, 1, 9_000, 61_000) }),
      { minLength: 1, maxLength: 12 },
    )
    await fc.assert(
      fc.asyncProperty(
        rule,
        rule,
        fc.boolean(),
        fc.constantFrom(...HEADER_DIALECTS),
        trace,
        async (...given) => {
          const [early, late, lateFirst, headers, requests] = given
          const clock = manualClock()
          const fit = ({ limit, cost, ...rest }: typeof early) => ({
            ...rest,
            limit: Math.max(limit, cost),
            cost,
          })
          const rules = [
            address(1, fit(early) as Partial<RateRule<Req>>),
            user(1, fit(late) as Partial<RateRule<Req>>),
          ]
          if (lateFirst) rules.reverse()
          const [stepped, atOnce] = [
            await mount({ rules, headers }, clock),
            await mount({ rules, headers }, clock),
          ]
          for (const { name, waitMs } of requests) {
            clock.advance(waitMs)
            const [one, other] = [await ask(stepped, name, "stepped"), await ask(atOnce, name, "together")]
            expect(one.status).toBe(other.status)
            const [mine, theirs] = [decisionOn(one.request), decisionOn(other.request)]
            // The address rule refuses on arrival, before the user's rule can be checked.
            if (mine?.checks.length !== 2) continue
            expect(one.headers).toEqual(other.headers)
            const short = (decision: typeof mine, stays = 0) => {
              const { allowed, policy, limit, remaining, cost, retryAfterMs, checks } = decision
              const told = checks.map((check) => {
                const taken = check.allowed ? stays * check.cost : 0
                return [check.policy, check.allowed, (check.remaining as number) - taken]
              })
              return { allowed, policy, limit, remaining, cost, retryAfterMs, told }
            }
            // The units of the address stay taken if the user's rule refuses, because they have protected authentication.
            expect(short(mine)).toEqual(short(theirs as typeof mine, mine.allowed ? 0 : 1))
            if (!mine.allowed) return
          }
        },
      ),
    )
  })

  it("does not refund earlier steps when a later step refuses, whatever refundWhen returns", async () => {
    const guard = await mount({
      rules: [address(4), user(1)],
      refundWhen: (_request, status) => status === 429,
    })
    for (const [name, status] of [
      ["a", 200],
      ["a", 429],
      ["a", 429],
      ["b", 200],
      ["c", 429],
    ] as const) {
      const asked = await ask(guard, name, "stepped")
      guard.reportStatus(asked.request, asked.status)
      expect(asked.status).toBe(status)
    }
    expect((await guard.limiter.peek(FACTS)).checks[0]?.remaining).toBe(0)
  })

  it("checks each rule once, and does nothing at a step without remaining rules", async () => {
    let skips = 0
    const guard = await mount({ rules: [address(9), user(9)], skip: () => ++skips > 9 })
    const warnings: string[] = []
    guard.limiter.on("warning", ({ code }) => warnings.push(code))
    const request: Req = { user: "a" }
    for (const step of ["arrival", "arrival", "body", "app", "app"] as const) {
      await guard.check(FACTS, request, RESPONSE, step)
    }
    expect(skips).toBe(2)
    expect(decisionOn(request)?.checks.map(({ policy, remaining }) => [policy, remaining])).toEqual([
      ["address", 8],
      ["user", 8],
    ])
    expect(warnings).toEqual([])
  })

  it("checks a rule only at its own step, even if the rule would match at a later step", async () => {
    const guard = await mount({ rules: [address(9, { match: { path: "/a" } }), user(9)] })
    const request: Req = { user: "a" }
    await guard.check({ ...FACTS, url: "/b" }, request, RESPONSE, "arrival")
    // The app has rewritten the address of the request.
    await guard.check({ ...FACTS, url: "/a" }, request, RESPONSE, "app")
    expect(decisionOn(request)?.checks.map(({ policy }) => policy)).toEqual(["user"])
  })

  it("waits at the first step until the first rules have loaded", async () => {
    const guard = await mount({
      rules: liveRules({ load: async () => ({ rules: [address(1)] as Rule[], problems: [] }) }),
      onRulesMissing: "allow",
    })
    const outcome = await guard.check(FACTS, {}, RESPONSE, "arrival")
    expect(outcome?.decision).toMatchObject({ policy: "address", remaining: 0 })
    await guard.close()
  })

  it("stores a decision on a request that no rule matches, but only at the last step", async () => {
    const guard = await mount({ rules: [user(9, { onMissing: "skip" })] })
    const request = {}
    const outcome = (await guard.check(FACTS, request, RESPONSE, "arrival")) as Outcome
    expect([outcome.headers, decisionOn(request)]).toEqual([[], undefined])
    await guard.check(FACTS, request, RESPONSE, "app")
    expect(decisionOn(request)).toMatchObject({ allowed: true, policy: "" })
  })

  it("reports a request once, even if its client hangs up between two steps", async () => {
    const guard = await mount({ rules: [address(9), user(9)] })
    const reported: string[][] = []
    guard.limiter.on("decision", ({ checks }) => reported.push(checks.map(({ policy }) => policy)))
    const response = Object.assign(new EventEmitter(), { headersSent: false })
    const request: Req = {}
    await guard.check(FACTS, request, response, "arrival")
    response.emit("close")
    request.user = "a"
    await guard.check(FACTS, request, response, "app")
    expect(reported).toEqual([["address"]])
  })

  it("reports the counters and the total duration of all steps in one event", async () => {
    const guard = await mount({ rules: [address(9), user(9)] })
    const reported: string[] = []
    const durationsMs: number[] = []
    guard.limiter.on("decision", (_decision, _request, { operation, durationMs, counters }) => {
      durationsMs.push(durationMs)
      for (const { policy, partition } of counters) reported.push(`${operation} ${policy.name} ${partition}`)
    })
    const startedMs = performance.now()
    await ask(guard, "a", "stepped")
    const passedMs = performance.now() - startedMs
    expect(reported).toEqual(["decide address 192.0.2.1", "decide user a"])
    expect(durationsMs.filter((ms) => ms > 0 && ms <= passedMs)).toHaveLength(1)
  })

  it("reports the same decisions for an asynchronous store as for a synchronous store", async () => {
    const reported: string[] = []
    const inner = memoryStore({ clock: manualClock() })
    for (const store of [inner, laterStore(inner)]) {
      const guard = await mount({ rules: [address(9)], store })
      guard.limiter.on("decision", ({ policy }, _request, { operation }) =>
        reported.push(`${operation} ${policy}`),
      )
      for (const way of ["stepped", "together"] as const) await ask(guard, "a", way)
      await guard.close()
    }
    expect(reported).toEqual(Array(4).fill("decide address"))
  })

  it("does not report a request that no rule matches", async () => {
    const guard = await mount({ rules: [address(9), user(9, { onMissing: "skip" })] })
    const reported: string[] = []
    guard.limiter.on("decision", ({ policy }) => reported.push(policy))
    const nobody = await mount({ rules: [user(9, { onMissing: "skip" })] })
    nobody.limiter.on("decision", ({ policy }) => reported.push(policy))
    await ask(nobody, undefined, "stepped")
    await ask(guard, undefined, "stepped")
    expect(reported).toEqual(["address"])
  })

  it("does not report a skipped request, whether it decides in steps or once", async () => {
    const guard = await mount({ rules: [user(9)], skip: (request) => request.user === "probe" })
    const reported: string[] = []
    guard.limiter.on("decision", (_decision, request) => reported.push(request.user as string))
    for (const way of ["stepped", "together"] as const)
      for (const name of ["probe", "a"]) await ask(guard, name, way)
    expect(reported).toEqual(["a", "a"])
  })

  it("decides nothing if the client has gone while a function of the app was pending", async () => {
    const guard = await mount({ rules: [address(1)], skip: async () => false })
    const gone = Object.assign(new EventEmitter(), { headersSent: false, closed: true })
    expect(await guard.check(FACTS, {}, gone, "body")).toBeUndefined()
    expect((await guard.check(FACTS, {}, RESPONSE, "body"))?.decision.remaining).toBe(0)
  })

  it("reports a limiter as mounted twice only if no rule was left for the second mount", async () => {
    const limiter = createLimiter<Req>({
      ...{ rules: [address(9), user(9, { onMissing: "skip" })], fields: { user: ({ user }: Req) => user } },
      logger: QUIET,
    })
    const codes: string[] = []
    limiter.on("warning", ({ code }) => codes.push(code))
    const [first, second] = [createGuard<Req>({ limiter }), createGuard<Req>({ limiter })]
    for (const name of [undefined, "a"]) {
      expect(codes).toEqual([])
      const request: Req = name === undefined ? {} : { user: name }
      for (const guard of [first, second]) await guard.check(FACTS, request)
    }
    expect(codes).toEqual(["SLUICE_MOUNTED_TWICE"])
  })

  it("does not report a limiter without rules as mounted twice if another limiter is before it", async () => {
    const [other, guard] = [await mount({ rules: [address(9)] }), await mount({ rules: [] })]
    const codes: string[] = []
    guard.limiter.on("warning", ({ code }) => codes.push(code))
    const request: Req = {}
    for (const each of [other, guard]) await each.check(FACTS, request)
    expect(codes).toEqual([])
  })

  it("stores a decision on a request even if the limiter has no rules", async () => {
    const { request } = await ask(await mount({ rules: [] }), "a", "stepped")
    expect(decisionOn(request)).toMatchObject({ allowed: true, checks: [] })
  })

  it("reports the operation hold if the last step has a queueing rule", async () => {
    const clock = manualClock()
    const throttle = { kind: "queue", maxWaitMs: 100_000 } as const
    const guard = await mount({ rules: [address(9), user(1, { throttle })] }, clock)
    const reported: string[] = []
    guard.limiter.on("decision", (_decision, _request, { operation }) => reported.push(operation))
    await ask(guard, "a", "stepped")
    const second = ask(guard, "a", "stepped")
    await nextTurn()
    clock.advance(61_000)
    expect((await second).status).toBe(200)
    expect(reported).toEqual(["hold", "hold"])
  })

  it("does not call the store in the second step if the store failed in the first step", async () => {
    const inner = memoryStore({ clock: manualClock() })
    let asked = 0
    const take: Store["take"] = () => {
      asked++
      throw new StoreUnavailableError("gone")
    }
    const throttle = { kind: "queue", maxWaitMs: 100_000 } as const
    const guard = await mount({
      rules: [address(9), user(9, { throttle })],
      store: { ...methodsOf(inner), take },
      onStoreFailure: "allow",
    })
    expect((await ask(guard, "a", "stepped")).status).toBe(200)
    expect(asked).toBe(1)
  })

  it("refunds and settles the units of all steps through one decision", async () => {
    const limiter = createLimiter<Req>({
      clock: manualClock(),
      fields: { user: (request) => request.user },
      rules: [address(9), user(5)],
    })
    const guard = createGuard<Req>({ limiter })
    await Promise.resolve()
    const left = async () =>
      (await limiter.peek({ ...FACTS, user: "a" } as Req)).checks.map((c) => c.remaining)
    const { request } = await ask(guard, "a", "stepped")
    expect(await left()).toEqual([8, 4])
    await limiter.settle(decisionOn(request) as never, 3)
    expect(await left()).toEqual([6, 2])
    const next = await ask(guard, "a", "stepped")
    await limiter.refund(decisionOn(next.request) as never)
    await limiter.refund(decisionOn(next.request) as never)
    expect(await left()).toEqual([6, 2])
    const other = createLimiter<Req>({ ...address(5, { name: "other" }) })
    await expect(other.refund(decisionOn(next.request) as never)).resolves.toBeUndefined()
    const third = await ask(guard, "a", "stepped")
    await expect(other.refund(decisionOn(third.request) as never)).rejects.toThrow(
      "was made by another limiter",
    )
  })

  it("calls refundWhen once, and refunds the units of all steps", async () => {
    const asked: number[] = []
    const guard = await mount({
      rules: [address(9), user(5)],
      refundWhen: (_request, status) => asked.push(status) > 0,
    })
    const { request } = await ask(guard, "a", "stepped")
    guard.reportStatus(request, 204)
    expect(asked).toEqual([204])
    const peeked = await guard.limiter.peek(Object.assign({ user: "a" }, FACTS))
    expect(peeked.checks.map(({ remaining }) => remaining)).toEqual([9, 5])
  })

  it("does not refund earlier steps if the client hangs up while a later step holds the request", async () => {
    const guard = await mount({
      rules: [address(9), user(1, { throttle: { kind: "queue", maxWaitMs: 100_000 } })],
    })
    await ask(guard, "a", "stepped")
    const response = new EventEmitter()
    const request: Req = { user: "a" }
    await guard.check(FACTS, request, response, "arrival")
    const held = guard.check(FACTS, request, response, "app")
    response.emit("close")
    expect(await held).toBeUndefined()
    expect((await guard.limiter.peek(FACTS)).checks[0]?.remaining).toBe(7)
  })

  it("checks a rule once, even if the rule moves to another step during the request", async () => {
    const { source, publish } = changingRules([address(9), user(9)] as Rule[])
    const guard = await mount({ rules: liveRules(source), onRulesMissing: "allow" })
    await guard.limiter.ready()
    const first: Req = {}
    await guard.check(FACTS, first, RESPONSE, "arrival")
    // From now on, the user rule counts by address and the address rule by user.
    await publish([address(9, { field: "user" }), user(9, { field: "ip" })] as Rule[])
    first.user = "a"
    await guard.check(FACTS, first, RESPONSE, "app")
    expect(decisionOn(first)?.checks.map(({ policy }) => policy)).toEqual(["address", "user"])
    await guard.close()
  })

  it("uses the new rules if they change while the promise of skip is pending", async () => {
    const { source, publish } = changingRules([address(9), user(9)] as Rule[])
    let pass = (): void => undefined
    const skip = (): Promise<boolean> =>
      new Promise((resolve) => {
        pass = () => resolve(false)
      })
    const guard = await mount({ rules: liveRules(source), onRulesMissing: "allow", skip })
    await guard.limiter.ready()
    const request: Req = {}
    const first = guard.check(FACTS, request, RESPONSE, "body")
    pass()
    await first
    request.user = "a"
    const second = guard.check(FACTS, request, RESPONSE, "app")
    // From now on, the user rule could be checked at the earlier step.
    await publish([address(9), user(7, { field: "ip" })] as Rule[])
    pass()
    await second
    expect(decisionOn(request)?.checks.map(({ policy, limit }) => [policy, limit])).toEqual([
      ["address", 9],
      ["user", 7],
    ])
    await guard.close()
  })

  it("joins its headers with the headers of another mount that decides in steps", async () => {
    const store = memoryStore({ clock: manualClock() })
    const one = await mount({ rules: [address(9), user(5)], store })
    const other = await mount({
      rules: [address(8, { name: "address 2" }), user(4, { name: "user 2" })],
      store,
    })
    const request: Req = {}
    const headers: Record<string, string> = {}
    for (const step of ["arrival", "app"] as const) {
      if (step === "app") request.user = "a"
      for (const guard of [one, other]) {
        apply((await guard.check(FACTS, request, RESPONSE, step)) as Outcome, headers)
      }
    }
    expect(headers.RateLimit).toBe('"user";r=4;t=61, "user 2";r=3;t=61')
    expect(headers["RateLimit-Policy"]).toBe(
      '"address";q=9;w=60, "user";q=5;w=60, "address 2";q=8;w=60, "user 2";q=4;w=60',
    )
    expect(decisionOn(request)?.policy).toBe("user 2")
  })

  it("counts a request once and warns if one limiter is mounted twice", async () => {
    const warnings: string[] = []
    const log = ({ code }: { readonly code: string }) => void warnings.push(code)
    const limiter = createLimiter<Req>({
      clock: manualClock(),
      fields: { user: (request) => request.user },
      rules: [address(9), user(5)],
      logger: { warn: log, error: log },
    })
    const guards = [createGuard<Req>({ limiter }), createGuard<Req>({ limiter })]
    await Promise.resolve()
    const request: Req = { user: "a" }
    for (const step of ["arrival", "app"] as const) {
      for (const guard of guards) await guard.check(FACTS, request, RESPONSE, step)
    }
    const peeked = await limiter.peek({ ...FACTS, user: "a" } as Req)
    expect(peeked.checks.map(({ remaining }) => remaining)).toEqual([8, 4])
    expect(warnings).toEqual(["SLUICE_MOUNTED_TWICE"])
  })

  it("admits a request that `skip` skips while the first rules load, and calls `skip` only once", async () => {
    let calls = 0
    const guard = await mount({
      rules: liveRules({ load: () => new Promise(() => {}) }),
      onRulesMissing: "deny",
      skip: () => ++calls === 1,
    })
    const outcome = guard.check(FACTS, {}, RESPONSE, "app")
    expect(outcome).not.toBeInstanceOf(Promise)
    expect([(outcome as Outcome).decision.allowed, calls]).toEqual([true, 1])
    await guard.close()
  })

  it("stores one outcome for all steps of a request that `skip` skips while the first rules load", async () => {
    const guard = await mount({
      rules: liveRules({ load: () => new Promise(() => {}) }),
      onRulesMissing: "deny",
      skip: () => true,
    })
    const request = {}
    const markOf = () => (request as Marked)[MARK]
    for (const step of ["arrival", "app"] as const) guard.check(FACTS, request, RESPONSE, step)
    expect([markOf() === undefined, markOf()?.earlier]).toEqual([false, undefined])
    await guard.close()
  })

  it.each(["stepped", "together"] as const)(
    "refuses a request that an earlier mount has skipped if no rules have loaded: %s",
    async (how) => {
      const limiter = createLimiter<Req>({
        rules: liveRules({ load: () => Promise.reject(new Error("no rules")) }),
        onRulesMissing: "deny",
        skip: ({ user }) => user === undefined,
        logger: QUIET,
      })
      await limiter.ready().catch(() => undefined)
      const guards = [createGuard<Req>({ limiter }), createGuard<Req>({ limiter })] as const
      await Promise.resolve()
      const request: Req = {}
      await guards[0].check(FACTS, request)
      request.user = "a"
      const outcome = await guards[1].check(FACTS, request, RESPONSE, how === "stepped" ? "app" : undefined)
      expect(outcome?.rejection?.status).toBe(503)
      await limiter.close()
    },
  )
})
