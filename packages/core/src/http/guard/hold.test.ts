import { EventEmitter } from "node:events"
import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import type { Decision } from "../../decision/decision.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import { createLimiter } from "../../limiter/create-limiter.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { Rule } from "../../rules/rule.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import type { Store } from "../../stores/store.ts"
import { countingStore } from "../../stores/testing/counting-store.ts"
import { laterStore } from "../../stores/testing/later-store.ts"
import { methodsOf } from "../../stores/testing/methods-of.ts"
import { createGuard } from "./create-guard.ts"
import type { GuardOptions } from "./guard.ts"
import type { Outcome } from "./mount-outcome.ts"

const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const QUIET = { warn() {}, error() {} }
const LEAKY = { limit: 10, window: "1 second", algorithm: "leaky-bucket", burst: 5 } as const
const QUEUE = {
  limit: 1,
  window: "1 second",
  algorithm: "fixed-window",
  throttle: { kind: "queue", maxWaiting: 2, maxWaitMs: 1_500 },
} as const

/** A response that counts its listeners. */
class FakeResponse extends EventEmitter {
  closed = false
  added = 0

  constructor() {
    super()
    this.on("newListener", () => {
      this.added++
    })
  }
  close() {
    this.closed = true
    this.emit("close")
  }
  get listening(): number {
    return this.listenerCount("close")
  }
}

async function setUp(options: object) {
  const clock = manualClock()
  const { store, calls } = countingStore(memoryStore({ clock }))
  const guard = createGuard({ clock, store, logger: QUIET, ...options } as GuardOptions<object>)
  // In the event loop turn of its creation, a guard assumes that a request handler created it.
  await nextTurn()
  const decisions: Decision[] = []
  guard.limiter.on("decision", (decision) => void decisions.push(decision))
  const check = (facts: RequestFacts = ALICE, response = new FakeResponse(), request: object = {}) => {
    const outcome = guard.check(facts, request, response)
    const held = { response, outcome, isOver: false, at: clock.now() }
    void Promise.resolve(outcome).then(() => {
      held.isOver = true
    })
    return held
  }
  return { clock, guard, calls, decisions, check }
}

describe("a request that has to wait", () => {
  it("goes first if it has the highest priority, which a function of the request may return", async () => {
    const throttle = { kind: "queue", maxWaitMs: 5_000 }
    const priority = ({ plan }: { plan?: string }) => (plan === "gold" ? 1 : 0)
    const { check, clock } = await setUp({ ...QUEUE, throttle, priority })
    const checked = [{}, {}, { plan: "gold" }].map((request) => check(ALICE, undefined, request))
    clock.advance(1_000)
    await nextTurn()
    expect(checked.map(({ isOver }) => isOver)).toEqual([true, false, true])
  })

  it("waits for a permit until another request releases it, and is refused after maxWaitMs", async () => {
    const throttle = { kind: "queue", maxWaitMs: 200 }
    const { check, clock, guard, calls } = await setUp({
      rules: [{ name: "in-flight", field: "ip", concurrent: 1, throttle }],
    })
    const [first, second, gone, third] = [check(), check(), check(), check()]
    gone.response.close()
    await guard.limiter.release((await first.outcome)?.decision as Decision)
    await nextTurn()
    expect([second, gone, third].map(({ isOver }) => isOver)).toEqual([true, true, false])
    expect(await gone.outcome).toBeUndefined()
    expect((await second.outcome)?.decision).toMatchObject({ allowed: true })
    for (let ms = 0; ms < 201; ms++) {
      clock.advance(1)
      await nextTurn()
    }
    expect((await third.outcome)?.decision).toMatchObject({ allowed: false, refusal: "in-flight" })
    expect(guard.limiter.status).toMatchObject({ inFlight: 1, waiting: 0 })
    expect(calls.returned).toBe(1)
  })

  it("adds a listener to its response only while it is delayed", async () => {
    const { check, clock, decisions } = await setUp(QUEUE)
    const first = check()
    expect([first.outcome instanceof Promise, first.response.added]).toEqual([false, 0])
    const second = check()
    expect([second.outcome instanceof Promise, second.response.listening]).toEqual([true, 1])
    clock.advance(999)
    await nextTurn()
    expect(second.isOver).toBe(false)
    clock.advance(1)
    expect((await second.outcome)?.decision).toMatchObject({ allowed: true })
    expect([second.response.added, second.response.listening]).toEqual([1, 0])
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true])
  })

  it("adds a listener to its response while a leaky bucket delays it", async () => {
    const { check, clock } = await setUp(LEAKY)
    expect(check().response.added).toBe(0)
    const held = check()
    expect(held.response.listening).toBe(1)
    clock.advance(100)
    await held.outcome
    expect(held.response.listening).toBe(0)
  })

  it("adds no listener to its response while the store's result is pending", async () => {
    const clock = manualClock()
    const store = memoryStore({ clock })
    const slow: Store = {
      ...methodsOf(store),
      take: async (checks) => nextTurn(store.take(checks)),
    }
    const guard = createGuard<object>({ ...QUEUE, limit: 2, clock, store: slow, logger: QUIET })
    await nextTurn()
    const responses = [new FakeResponse(), new FakeResponse()]
    await Promise.all(responses.map((response) => guard.check(ALICE, {}, response)))
    expect(responses.map(({ added }) => added)).toEqual([0, 0])
  })

  it("is dropped without an outcome, a decision or taken units when its client hangs up", async () => {
    const { check, clock, calls, decisions } = await setUp(QUEUE)
    check()
    const [second, third] = [check(), check()]
    second.response.close()
    expect(await second.outcome).toBeUndefined()
    expect(second.response.listening).toBe(0)
    clock.advance(1_000)
    expect((await third.outcome)?.decision.allowed).toBe(true)
    expect([calls.returned, decisions.length]).toEqual([0, 2])
  })

  it("gets its units back if the client hangs up during the delay", async () => {
    const { check, calls, guard } = await setUp(LEAKY)
    check()
    const second = check()
    second.response.close()
    expect(await second.outcome).toBeUndefined()
    expect(calls.returned).toBe(1)
    expect((await guard.limiter.peek(ALICE, { cost: 0 })).remaining).toBe(4)
  })

  it("is dropped immediately if its client has already gone", async () => {
    const { check, calls } = await setUp(QUEUE)
    check()
    const response = new FakeResponse()
    response.closed = true
    const gone = check(ALICE, response)
    expect(await gone.outcome).toBeUndefined()
    expect(response.listening).toBe(0)
    // The line is empty for the next request.
    expect(check().response.listening).toBe(1)
    expect(calls.takes).toBe(3)
  })

  it("waits even if the adapter passes no response", async () => {
    const { guard, clock } = await setUp(QUEUE)
    guard.check(ALICE, {})
    const outcome = guard.check(ALICE, {})
    clock.advance(1_000)
    expect((await outcome).decision.allowed).toBe(true)
  })

  it("gets the headers that apply when it proceeds", async () => {
    const { check, clock } = await setUp({ ...QUEUE, limit: 2 })
    check()
    check()
    const third = check()
    clock.advance(1_000)
    expect((await third.outcome)?.headers).toEqual([
      ["RateLimit-Policy", '"ip-1s";q=2;w=1'],
      ["RateLimit", '"ip-1s";r=1;t=1'],
    ])
  })
})

it.each([
  ["hold", QUEUE],
  ["decide", { ...QUEUE, throttle: "hard" as const }],
])("the decision event of a guard contains the operation %s", async (operation, options) => {
  const { guard, check } = await setUp(options)
  const heard: string[] = []
  guard.limiter.on("decision", (_decision, _request, call) => heard.push(call.operation))
  check()
  expect(heard).toEqual([operation])
})

describe("the waiting limits", () => {
  it("are the smallest limits of all queueing rules", async () => {
    const slow = {
      ...QUEUE,
      name: "slow",
      throttle: { kind: "queue", maxWaiting: 9, maxWaitMs: 999 },
    } as const
    const small = {
      ...QUEUE,
      name: "small",
      throttle: { kind: "queue", maxWaiting: 1, maxWaitMs: 9_000 },
    } as const
    const { check, clock } = await setUp({ rules: [slow, small].map((rule) => ({ ...rule, field: "ip" })) })
    check()
    clock.advance(500)
    const held = check()
    expect(held.outcome).toBeInstanceOf(Promise)
    const crowd = (await check().outcome) as Outcome
    expect(crowd.decision).toMatchObject({ allowed: false, refusal: "quota", retryAfterMs: 500 })
    expect(crowd.rejection?.status).toBe(429)
    clock.advance(500)
    await held.outcome
    const late = (await check().outcome) as Outcome
    expect(late.decision.allowed).toBe(false)
  })

  it("do not count requests that a leaky bucket delays, because its burst bounds their number", async () => {
    const throttle = { kind: "queue", maxWaiting: 2 } as const
    const { check, calls } = await setUp({ ...LEAKY, throttle })
    const held = Array.from({ length: 7 }, () => check())
    expect(held.map(({ outcome }) => outcome instanceof Promise)).toEqual([false, ...Array(6).fill(true)])
    expect(((await check().outcome) as Outcome).decision).toMatchObject({ allowed: false, retryAfterMs: 100 })
    // The limiter does not call the store for a request that does not fit, nor for a request that waits behind
    // another request.
    expect(calls).toMatchObject({ takes: 6, returned: 0 })
  })

  it("allow no queue in front of a leaky bucket by default, so a full bucket refuses immediately", async () => {
    const { check, clock } = await setUp(LEAKY)
    const held = Array.from({ length: 5 }, () => check())
    clock.advance(30)
    const refused = check()
    expect(refused.outcome).not.toBeInstanceOf(Promise)
    const { decision } = refused.outcome as Outcome
    expect(decision).toMatchObject({ allowed: false, refusal: "quota", retryAfterMs: 70, remaining: 0 })
    clock.advance(decision.retryAfterMs)
    await nextTurn()
    expect(held.map(({ isOver }) => isOver)).toEqual([true, true, false, false, false])
    const next = check()
    expect(next.outcome).toBeInstanceOf(Promise)
    clock.advance(400)
    for (const { outcome } of [...held, next]) expect((await outcome)?.decision.allowed).toBe(true)
  })

  it("allow no queue in front of a leaky bucket by default, even if the store is asynchronous", async () => {
    const clock = manualClock()
    const inner = memoryStore({ clock })
    const { store, calls } = countingStore({
      ...methodsOf(inner),
      take: async (checks) => nextTurn(inner.take(checks)),
    })
    const guard = createGuard<object>({
      limit: 50,
      window: "1 second",
      algorithm: "leaky-bucket",
      burst: 10,
      clock,
      store,
      logger: QUIET,
    })
    await nextTurn()
    const outcomes = Array.from({ length: 200 }, () => Promise.resolve(guard.check(ALICE, {})))
    for (const outcome of outcomes.slice(10)) {
      expect((await outcome)?.decision).toMatchObject({ allowed: false, retryAfterMs: 20 })
    }
    expect(calls).toMatchObject({ takes: 200, returned: 0 })
    clock.advance(180)
    for (const outcome of outcomes.slice(0, 10)) expect((await outcome)?.decision.allowed).toBe(true)
  })

  it("let requests wait for another rule even if one rule is a leaky bucket", async () => {
    const rules: Rule[] = [
      { ...LEAKY, name: "bucket", field: "ip" },
      { ...QUEUE, name: "line", field: "service", throttle: { kind: "queue", maxWaiting: 9 } },
    ]
    const { check, clock } = await setUp({ rules })
    check()
    const waiting = [check(), check()]
    for (const waits of waiting) {
      expect(waits.outcome).toBeInstanceOf(Promise)
      clock.advance(1_000)
      expect((await waits.outcome)?.decision.allowed).toBe(true)
    }
  })

  it("do not let a request overtake an earlier acquire() that waits for a leaky bucket", async () => {
    const { check, clock, guard } = await setUp({ ...LEAKY, burst: 1 })
    check()
    const acquiring = guard.limiter.acquire(ALICE)
    expect(((await check().outcome) as Outcome).decision).toMatchObject({ allowed: false, retryAfterMs: 100 })
    clock.advance(100)
    expect((await acquiring).allowed).toBe(true)
  })
})

describe("a rule beside a queueing rule", () => {
  const hard: Rule = { name: "hard", limit: 2, window: "1 minute", algorithm: "fixed-window", field: "ip" }
  const queue: Rule = { ...QUEUE, name: "queue", field: "service" }

  it("refuses immediately and takes no units, even if the request would wait behind other requests", async () => {
    const { check, clock, calls } = await setUp({ rules: [hard, queue] })
    const bob = { remoteAddress: "192.0.2.2" }
    check()
    const held = check()
    clock.advance(1_000)
    await held.outcome
    const waits = check(bob)
    expect(waits.outcome).toBeInstanceOf(Promise)
    const asked = calls.takes
    const refused = (await check().outcome) as Outcome
    expect(refused.decision).toMatchObject({ allowed: false, policy: "hard", refusal: "quota" })
    // The refused request only peeked.
    expect([calls.takes, calls.reads]).toEqual([asked, 1])
  })

  it("counts its own refusals for its penalty, but not requests that wait for the queueing rule", async () => {
    const penalty = { refusals: 2, for: "1 hour" } as const
    const rules = [
      { ...hard, penalty },
      { ...queue, limit: 2 },
    ]
    const { check, clock } = await setUp({ rules })
    check()
    check()
    clock.advance(1_000)
    for (const refusal of ["quota", "penalty", "penalty"]) {
      expect(((await check().outcome) as Outcome).decision).toMatchObject({ policy: "hard", refusal })
    }
    // Bob's request fits into both counters, because the requests that the hard rule refused have taken no units.
    const bob = { remoteAddress: "192.0.2.2" }
    check(bob)
    check(bob)
    const carol = { remoteAddress: "192.0.2.3" }
    const waiting = [check(carol), check(carol)]
    expect(waiting.map(({ outcome }) => outcome instanceof Promise)).toEqual([true, true])
    clock.advance(1_000)
    for (const { outcome } of waiting) expect((await outcome)?.decision.allowed).toBe(true)
  })

  it("returns its delay and holds no request if it is a hard leaky bucket", async () => {
    const leaky: Rule = { ...LEAKY, name: "leaky", field: "ip", throttle: "hard" }
    const { check } = await setUp({ rules: [leaky, { ...queue, limit: 9 }] })
    check()
    const second = check()
    expect(second.outcome).not.toBeInstanceOf(Promise)
    expect(((await second.outcome) as Outcome).decision).toMatchObject({ allowed: true, delayMs: 100 })
  })

  it("decides immediately if the queueing rule does not match the request", async () => {
    const { check } = await setUp({ rules: [hard, { ...queue, match: { methods: ["POST"] } }] })
    check()
    const second = check()
    expect([second.outcome instanceof Promise, second.response.added]).toEqual([false, 0])
  })
})

it.each([
  ["rejects", () => Promise.reject(new Error("broken"))],
  [
    "throws",
    () => {
      throw new Error("broken")
    },
  ],
])(
  "waiting requests get a 503 response, and one warning is logged, if clock.wait %s",
  async (_what, wait) => {
    const { check, guard } = await setUp({ ...QUEUE, clock: { now: () => Date.UTC(2024, 0, 1), wait } })
    const warned: string[] = []
    guard.limiter.on("warning", ({ code, message }) => warned.push(`${code}: ${message}`))
    check()
    for (const held of [check(), check()])
      expect(((await held.outcome) as Outcome).rejection?.status).toBe(503)
    const failed =
      "SLUICE_CALLBACK_FAILED: clock.wait failed: Error: broken. Requests that would have to wait are refused with 503. Fix clock.wait, or leave it out to use timers."
    expect(warned).toEqual([failed])
  },
)

it("a waiting request causes no warning if its client disconnects, the server drains or the limiter closes", async () => {
  const warned: string[] = []
  const log = ({ code }: { readonly code: string }) => void warned.push(code)
  const options = { ...QUEUE, logger: { warn: log, error: log } }
  const [one, other] = [await setUp(options), await setUp(options)]
  one.check()
  const gone = one.check()
  gone.response.close()
  const closed = one.check()
  await one.guard.limiter.close()
  other.check()
  const drained = other.check()
  other.guard.drain()
  const [nobody, ...refused] = await Promise.all([gone, closed, drained].map(({ outcome }) => outcome))
  expect([nobody, ...refused.map((outcome) => outcome?.rejection?.status)]).toEqual([undefined, 503, 503])
  expect(warned).toEqual([])
})

describe("a guard at shutdown", () => {
  it("releases delayed requests with 503, and delays no later requests", async () => {
    const { check, guard, calls } = await setUp(LEAKY)
    check()
    const held = check()
    guard.drain()
    const outcome = (await held.outcome) as Outcome
    expect(outcome.decision).toMatchObject({ allowed: false, refusal: "store-failure", degraded: true })
    expect([outcome.rejection?.status, outcome.rejection?.headers]).toEqual([
      503,
      [
        ["Retry-After", "1"],
        ["Cache-Control", "no-store"],
        ["Content-Type", "application/problem+json"],
      ],
    ])
    expect(outcome.headers.map(([name]) => name)).not.toContain("RateLimit")
    expect([calls.returned, held.response.listening]).toEqual([1, 0])
    const later = check()
    expect(((await later.outcome) as Outcome).rejection?.status).toBe(503)
    expect([calls.returned, later.response.listening]).toEqual([2, 0])
  })

  it("also releases requests of its routes, but not requests of another server's guard", async () => {
    const clock = manualClock()
    const limiter = createLimiter<object>({ ...QUEUE, clock, logger: QUIET })
    const [one, other] = [createGuard<object>({ limiter }), createGuard<object>({ limiter })]
    const route = one.forRoute(QUEUE, { label: "route" })
    await nextTurn()
    one.check(ALICE, {})
    route.check(ALICE, {})
    const held = [one, route, other].map((guard) => Promise.resolve(guard.check(ALICE, {})))
    one.drain()
    expect((await held[0])?.rejection?.status).toBe(503)
    expect((await held[1])?.rejection?.status).toBe(503)
    clock.advance(1_000)
    expect((await held[2])?.rejection).toBeUndefined()
  })

  it("releases requests when it closes, even if it does not own the limiter", async () => {
    const limiter = createLimiter<object>({ ...QUEUE, clock: manualClock(), logger: QUIET })
    const guard = createGuard<object>({ limiter })
    await nextTurn()
    guard.check(ALICE, {})
    const held = Promise.resolve(guard.check(ALICE, {}))
    await guard.close()
    expect((await held)?.rejection?.status).toBe(503)
    await limiter.close()
  })

  it("releases requests when the limiter closes, and delays no later requests", async () => {
    const { check, guard } = await setUp(QUEUE)
    check()
    const held = check()
    await guard.limiter.close()
    expect(((await held.outcome) as Outcome).rejection?.status).toBe(503)
    const later = (await check().outcome) as Outcome
    expect(later.rejection?.status).toBe(429)
  })

  it("delays no request after the limiter is closed, even if the store is asynchronous", async () => {
    const clock = manualClock()
    const { check, guard } = await setUp({ ...QUEUE, clock, store: laterStore(memoryStore({ clock })) })
    await guard.limiter.close()
    const [first, second] = [await check().outcome, await check().outcome] as Outcome[]
    expect([first?.rejection, second?.rejection?.status]).toEqual([undefined, 429])
  })
})

it("a skip function is called once for a request that would wait, even after the limiter is closed", async () => {
  let asked = 0
  const skip = () => {
    asked++
    return true
  }
  const guard = createGuard<object>({ ...QUEUE, skip, logger: QUIET } as GuardOptions<object>)
  // In the event loop turn of its creation, a guard assumes that a request handler created it.
  await nextTurn()
  expect((await guard.check(ALICE, {})).decision.limit).toBe(Number.POSITIVE_INFINITY)
  expect(asked).toBe(1)
  await guard.close()
  await guard.check(ALICE, {})
  expect(asked).toBe(2)
})
