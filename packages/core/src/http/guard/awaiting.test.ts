import { EventEmitter } from "node:events"
import { setImmediate as nextTurn } from "node:timers/promises"
import { liveRules, type RuleSource } from "@sluice/rules"
import { describe, expect, it, onTestFinished } from "vitest"
import { manualClock } from "../../ground/manual-clock.ts"
import { createLimiter } from "../../limiter/create-limiter.ts"
import type { Limiter } from "../../limiter/interface/limiter.ts"
import { decisionOn } from "../../limiter/interface/mount-decision.ts"
import type { LimiterOptions, LimiterSettings } from "../../limiter/options/options.ts"
import type { DecisionStep } from "../../limiter/rule-set/steps.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { Rule } from "../../rules/rule.ts"
import { createGuard } from "./create-guard.ts"
import type { Guard } from "./guard.ts"
import type { Outcome } from "./mount-outcome.ts"

interface Req {
  user?: string
}

const FACTS: RequestFacts = { method: "GET", url: "/", headers: {}, remoteAddress: "192.0.2.1" }
const WINDOW = { window: "1m", algorithm: "fixed-window" } as const
const ADDRESS: Rule<Req> = { ...WINDOW, name: "address", field: "ip", limit: 5 }
const USER: Rule<Req> = { ...WINDOW, name: "user", field: "user", limit: 2 }

/** A response whose client can leave. */
class FakeResponse extends EventEmitter {
  closed = false

  leave(): void {
    this.closed = true
    this.emit("close")
  }
}

async function mount(options: LimiterSettings<Req>) {
  const clock = manualClock()
  const logger = { warn() {}, error() {} }
  const user = async (request: Req) => {
    await nextTurn()
    return request.user
  }
  const fields = { user }
  const limiter: Limiter<Req> = createLimiter<Req>({
    clock,
    logger,
    fields,
    ...options,
  } as LimiterOptions<Req>)
  onTestFinished(() => limiter.close())
  const guard = createGuard<Req>({ limiter })
  const left = async (rule: string, user = "ann") => {
    const { checks } = await limiter.peek({ ...FACTS, user } as Req, { rules: [rule] })
    return checks[0]?.remaining
  }
  await nextTurn()
  return { clock, guard, limiter, left }
}

/** Checks a request at each step, and returns the last outcome. */
async function pass(guard: Guard<Req>, request: Req, response = new FakeResponse()) {
  let outcome: Outcome | undefined
  for (const step of guard.steps) {
    outcome = await guard.check(FACTS, request, response, step)
    if (outcome?.rejection !== undefined) break
  }
  return outcome
}

describe("a guard with asynchronous functions", () => {
  it("decides in steps like a guard with synchronous functions, and reports one decision", async () => {
    const options = {
      rules: [ADDRESS, USER],
      cost: async () => 2,
      skip: async ({ user }: Req) => user === "probe",
    }
    const { guard, limiter, left } = await mount(options)
    expect(guard.steps).toEqual(["body", "app"])
    const events: unknown[] = []
    limiter.on("decision", ({ allowed, checks }, _request, { counters }) => {
      events.push([allowed, checks.map(({ taken }) => taken), counters.map(({ partition }) => partition)])
    })
    const request: Req = { user: "ann" }
    const admitted = await pass(guard, request)
    expect(admitted?.decision).toMatchObject({ allowed: true, policy: "user", cost: 2, remaining: 0 })
    expect(decisionOn(request)).toBe(admitted?.decision)
    expect((await pass(guard, { user: "ann" }))?.rejection?.status).toBe(429)
    expect((await pass(guard, { user: "probe" }))?.decision).toMatchObject({ policy: "" })
    expect(events).toEqual([
      [true, [undefined, undefined], ["192.0.2.1", "ann"]],
      [false, [2, undefined], ["192.0.2.1", "ann"]],
    ])
    // The units of the refused request at the first step stay taken.
    expect([await left("address"), await left("user")]).toEqual([1, 0])
  })

  it.each<[string, LimiterSettings<Req>, DecisionStep]>([
    ["a field", { rules: [ADDRESS, USER] }, "arrival"],
    ["skip", { rules: [ADDRESS, USER], skip: async () => false }, "body"],
  ])(
    "takes no further units if the client leaves while the promise of %s is pending",
    async (_what, options, first) => {
      const { guard, left } = await mount(options)
      const response = new FakeResponse()
      const request: Req = { user: "ann" }
      await guard.check(FACTS, request, response, first)
      expect(await left("address")).toBe(4)
      const checking = guard.check(FACTS, request, response, "app")
      response.leave()
      expect(await checking).toBeUndefined()
      expect([await left("address"), await left("user")]).toEqual([4, 2])
    },
  )

  it("takes no units if the client leaves during the first step", async () => {
    const { guard, left } = await mount({ ...USER, skip: async () => false })
    for (const step of [undefined, "app"] as const) {
      const response = new FakeResponse()
      const checking = guard.check(FACTS, { user: "ann" }, response, step)
      response.leave()
      expect(await checking).toBeUndefined()
    }
    expect(await left("user")).toBe(2)
  })

  it("does not wait for the first rules if skip resolves to true, and calls skip once", async () => {
    let open = (): void => undefined
    const opened = new Promise<void>((resolve) => {
      open = resolve
    })
    const source: RuleSource = {
      async load() {
        await opened
        return { rules: [{ ...ADDRESS, limit: 5 }], problems: [] } as never
      },
    }
    let skips = 0
    const skip = async ({ user }: Req) => {
      skips++
      return user === "probe"
    }
    const { guard } = await mount({ rules: liveRules(source), onRulesMissing: "deny", skip })
    expect(await guard.check(FACTS, { user: "probe" }, new FakeResponse(), "app")).toMatchObject({
      decision: { allowed: true, policy: "" },
    })
    expect(await guard.check(FACTS, { user: "probe" })).toMatchObject({ decision: { policy: "" } })
    const waiting = [guard.check(FACTS, {}, new FakeResponse(), "app"), guard.check(FACTS, {})]
    await nextTurn()
    open()
    const remaining = (await Promise.all(waiting)).map((outcome) => outcome?.decision.remaining)
    expect(remaining.sort()).toEqual([3, 4])
    expect(skips).toBe(4)
  })

  it("holds a request under a queueing rule", async () => {
    const throttle = { kind: "queue", maxWaitMs: 60_000 } as const
    const { guard, clock } = await mount({ ...USER, limit: 1, throttle })
    const [first, second] = [pass(guard, { user: "ann" }), pass(guard, { user: "ann" })]
    expect((await first)?.decision.allowed).toBe(true)
    await nextTurn()
    clock.advance(60_000)
    expect((await second)?.decision.allowed).toBe(true)
  })
})
