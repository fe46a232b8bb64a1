import { createHash } from "node:crypto"
import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import type { Decision, PolicyCheck } from "../../decision/decision.ts"
import { type ManualClock, manualClock } from "../../ground/manual-clock.ts"
import { createLimiter } from "../../limiter/create-limiter.ts"
import type { Limiter } from "../../limiter/interface/limiter.ts"
import type { LimiterOptions, LimiterSettings } from "../../limiter/options/options.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { RulePenalty } from "../../rules/rule.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import type { Check, Store } from "../../stores/store.ts"
import { methodsOf } from "../../stores/testing/methods-of.ts"

const MINUTE = 60_000
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const BOB: RequestFacts = { remoteAddress: "192.0.2.2" }
const PENALTY: RulePenalty = { refusals: 3, for: "10 minutes" }
const QUIET = { warn() {}, error() {} }

interface Opened {
  readonly clock: ManualClock
  readonly limiter: Limiter<RequestFacts>
}

function open(options: LimiterSettings<RequestFacts>): Opened {
  const clock = manualClock()
  return {
    clock,
    limiter: createLimiter({ clock, logger: QUIET, ...options } as LimiterOptions<RequestFacts>),
  }
}

/** Creates a limiter of two per minute that blocks a client for ten minutes after three refusals within a minute. */
function penalized(options: LimiterSettings<RequestFacts> = {}): Opened {
  return open({ limit: 2, window: "1 minute", algorithm: "fixed-window", penalty: PENALTY, ...options })
}

type Told = [allowed: boolean, refusal: string | undefined, retryAfterMs: number]

function told({ allowed, refusal, retryAfterMs }: Decision): Told {
  return [allowed, refusal, retryAfterMs]
}

async function decide({ limiter }: Opened, times: number, request = ALICE): Promise<Told[]> {
  const all: Told[] = []
  for (let i = 0; i < times; i++) all.push(told(await limiter.decide(request)))
  return all
}

/** Creates a memory store that records the checks of each request. */
function listening(clock: ManualClock): { store: Store; asked: (readonly Check[])[] } {
  const inner = memoryStore({ clock })
  const asked: (readonly Check[])[] = []
  const store: Store = {
    ...methodsOf(inner),
    take(checks) {
      asked.push(checks)
      return inner.take(checks)
    },
  }
  return { store, asked }
}

const OK: Told = [true, undefined, 0]

describe("a penalty", () => {
  it("starts with the refusal that reaches the configured number, which reports the whole block", async () => {
    const opened = penalized()
    expect(await decide(opened, 6)).toEqual([
      OK,
      OK,
      [false, "quota", MINUTE],
      [false, "quota", MINUTE],
      [false, "penalty", 10 * MINUTE],
      [false, "penalty", 10 * MINUTE],
    ])
    expect(await decide(opened, 1, BOB)).toEqual([OK])
  })

  it("ends after exactly the reported wait, and then counts refusals from zero", async () => {
    const opened = penalized()
    await decide(opened, 5)
    for (const afterMs of [MINUTE, 5 * MINUTE, 4 * MINUTE - 1]) {
      opened.clock.advance(afterMs)
      expect((await opened.limiter.decide(ALICE)).refusal).toBe("penalty")
    }
    expect((await opened.limiter.decide(ALICE)).retryAfterMs).toBe(1)
    opened.clock.advance(1)
    expect((await decide(opened, 4)).map(([allowed]) => allowed)).toEqual([true, true, false, false])
    expect((await opened.limiter.decide(ALICE)).refusal).toBe("penalty")
  })

  it("reports 0 remaining units during a block, in the single check of its rule", async () => {
    const opened = penalized({ rejectionMessage: "You are blocked." })
    await decide(opened, 5)
    opened.clock.advance(3 * MINUTE)
    const { checks, ...decision } = await opened.limiter.decide(ALICE)
    expect(decision).toMatchObject({ remaining: 0, cost: 0, limit: 2, rejectionMessage: "You are blocked." })
    expect(checks).toHaveLength(1)
    expect(checks[0]).toMatchObject({
      policy: "ip-1m",
      allowed: false,
      refusal: "penalty",
      remaining: 0,
      retryAfterMs: 7 * MINUTE,
      nextUnitAfterMs: 7 * MINUTE,
      resetAfterMs: 7 * MINUTE,
    } satisfies Partial<PolicyCheck>)
  })

  it("returns the wait for the quota if it is longer than the block", async () => {
    const opened = penalized({ window: "1 hour", penalty: { refusals: 1, for: "1 minute" } })
    expect((await decide(opened, 3)).at(-1)).toEqual([false, "penalty", 60 * MINUTE])
    const [check] = (await opened.limiter.peek(ALICE)).checks
    expect([check?.nextUnitAfterMs, check?.resetAfterMs]).toEqual([60 * MINUTE, 60 * MINUTE])
    opened.clock.advance(MINUTE)
    expect((await opened.limiter.peek(ALICE)).refusal).toBe("quota")
  })

  it.each<[string, LimiterSettings<RequestFacts>, number, Partial<PolicyCheck>]>([
    [
      "delays in a leaky bucket",
      { algorithm: "leaky-bucket", throttle: "hard", limit: 60, burst: 2 },
      1,
      { delayMs: 1_000 },
    ],
    ["marks as over its soft limit", { throttle: { kind: "soft", percent: 100 } }, 3, { overLimit: true }],
  ])("refuses a blocked request that its rule otherwise %s", async (_what, rule, cost, outside) => {
    const inside = { allowed: false, refusal: "penalty", delayMs: 0, overLimit: false }
    for (const [penalty, expected] of [
      [{ refusals: 1, for: "1 hour" }, inside],
      [undefined, { allowed: true, ...outside }],
    ] as const) {
      const opened = penalized({ ...rule, ...(penalty === undefined ? { penalty: undefined } : { penalty }) })
      while ((await opened.limiter.decide(ALICE)).allowed);
      opened.clock.advance(rule.algorithm === undefined ? MINUTE : 1_000)
      expect((await opened.limiter.peek(ALICE, { cost })).checks[0]).toMatchObject(expected)
    }
  })

  it("counts only the refusals of its own rule", async () => {
    const opened = open({
      rules: [
        { name: "other", field: "ip", limit: 1, window: "1 hour", algorithm: "fixed-window" },
        { name: "own", field: "ip", limit: 3, window: "1 hour", algorithm: "fixed-window", penalty: PENALTY },
      ],
    })
    expect((await decide(opened, 6)).map(([allowed]) => allowed)).toEqual([
      true,
      ...Array.from({ length: 5 }, () => false),
    ])
    const { checks } = await opened.limiter.decide(ALICE)
    expect(checks.map(({ policy, allowed, refusal }) => [policy, allowed, refusal])).toEqual([
      ["other", false, "quota"],
      ["own", true, undefined],
    ])
  })

  it("appears in the check of its rule, even if another rule refuses for longer", async () => {
    const opened = open({
      rules: [
        { name: "day", field: "ip", limit: 2, window: "1 day", algorithm: "fixed-window" },
        { name: "own", field: "ip", limit: 2, window: "1 hour", algorithm: "fixed-window", penalty: PENALTY },
      ],
    })
    await decide(opened, 5)
    const decision = await opened.limiter.decide(ALICE)
    expect([decision.policy, decision.refusal]).toEqual(["day", "quota"])
    expect(decision.checks.map(({ refusal }) => refusal)).toEqual(["quota", "penalty"])
  })

  it("takes no units from any rule during a block", async () => {
    const opened = open({
      rules: [
        { name: "wide", field: "ip", limit: 100, window: "1 hour" },
        { name: "own", field: "ip", limit: 1, window: "1 minute", penalty: { refusals: 1, for: "1 hour" } },
      ],
    })
    await decide(opened, 2)
    opened.clock.advance(2 * MINUTE)
    await decide(opened, 5)
    const { checks } = await opened.limiter.peek(ALICE)
    expect(checks.map(({ counts }) => (counts?.current ?? 0) + (counts?.previous ?? 0))).toEqual([1, 0])
  })

  it("of a shadow rule blocks no request", async () => {
    const opened = penalized({ shadow: true })
    await decide(opened, 20)
    const { allowed, shadowed, checks } = await opened.limiter.decide(ALICE)
    expect([allowed, shadowed, checks[0]?.refusal]).toEqual([true, ["ip-1m"], "quota"])
  })

  it("is visible in a peek, which counts nothing", async () => {
    const opened = penalized()
    await decide(opened, 4)
    for (let i = 0; i < 5; i++) {
      expect(told(await opened.limiter.peek(ALICE))).toEqual([false, "quota", MINUTE])
    }
    await decide(opened, 1)
    expect(told(await opened.limiter.peek(ALICE))).toEqual([false, "penalty", 10 * MINUTE])
    opened.clock.advance(2 * MINUTE)
    expect(told(await opened.limiter.peek(ALICE))).toEqual([false, "penalty", 8 * MINUTE])
  })

  it("is reset together with the counts of its rule", async () => {
    const opened = penalized()
    await decide(opened, 5)
    await opened.limiter.reset(ALICE)
    expect((await decide(opened, 5)).map(([, refusal]) => refusal)).toEqual([
      undefined,
      undefined,
      "quota",
      "quota",
      "penalty",
    ])
    await opened.limiter.reset(ALICE, { rules: ["ip-1m"] })
    expect(await decide(opened, 1)).toEqual([OK])
  })

  it("counts one refusal for a partial grant only if no units were left", async () => {
    const opened = penalized({ limit: 5 })
    const grants = []
    for (let i = 0; i < 5; i++) {
      const { allowed, cost, refusal } = await opened.limiter.takeUpTo(ALICE, 4)
      grants.push([allowed, cost, refusal])
    }
    expect(grants).toEqual([
      [true, 4, undefined],
      [true, 1, undefined],
      [false, 0, "quota"],
      [false, 0, "quota"],
      [false, 0, "penalty"],
    ])
  })

  it("does not count a waiting request that is checked again at the head of the queue", async () => {
    const opened = penalized({ limit: 1, penalty: { refusals: 2, within: "1 day", for: "1 hour" } })
    const { clock, limiter } = opened
    let admitted = 0
    for (let i = 0; i < 4; i++) {
      void limiter.acquire(ALICE).then(() => {
        admitted++
      })
    }
    for (let minutes = 0; minutes < 4; minutes++) {
      await nextTurn()
      expect(admitted).toBe(minutes + 1)
      clock.advance(MINUTE)
    }
    expect((await decide(opened, 2)).map(([, refusal]) => refusal)).toEqual([undefined, "quota"])
    // During a block, `acquire` waits for the end of the block.
    expect((await decide(opened, 1))[0]).toEqual([false, "penalty", 60 * MINUTE])
    void limiter.acquire(ALICE).then(() => {
      admitted++
    })
    for (const [afterMs, then] of [
      [60 * MINUTE - 1, 4],
      [1, 5],
    ] as const) {
      await nextTurn()
      clock.advance(afterMs)
      await nextTurn()
      expect(admitted).toBe(then)
    }
  })

  it("survives a change of the rule's window and algorithm, and uses its current durations", async () => {
    const clock = manualClock()
    const store = memoryStore({ clock })
    const rule = { limit: 2, name: "ip", clock, store, logger: QUIET }
    const before = createLimiter({ ...rule, window: "1 minute", penalty: PENALTY })
    await decide({ clock, limiter: before }, 5)
    await before.close()
    const penalty = { refusals: 3, for: "4 minutes" }
    const after = createLimiter({ ...rule, window: "1 hour", algorithm: "token-bucket", penalty })
    clock.advance(MINUTE)
    expect((await decide({ clock, limiter: after }, 1))[0]).toEqual([false, "penalty", 3 * MINUTE])
    await after.close()
    // A rule that counts by another field does not share the penalty.
    const other = createLimiter({ ...rule, window: "1 hour", field: "route", onMissing: "ip", penalty })
    expect((await other.decide(ALICE)).allowed).toBe(true)
  })

  it("adds one check to the store call for its rule, and none for other rules", async () => {
    const clock = manualClock()
    const { store, asked } = listening(clock)
    const rules = [
      { name: "own", field: "ip", limit: 1, window: "1 minute", penalty: PENALTY },
      { name: "other", field: "ip", limit: 9, window: "1 minute" },
      { name: "trial", field: "ip", limit: 9, window: "1 minute", penalty: PENALTY, shadow: true },
    ]
    const limiter = createLimiter({ rules, clock, store, logger: QUIET })
    await limiter.decide(ALICE)
    await limiter.decide(ALICE)
    const algorithms = asked.map((checks) => checks.map(({ policy }) => `${policy.name} ${policy.algorithm}`))
    const all = ["own sliding-window", "own penalty", "other sliding-window", "trial sliding-window"]
    expect(algorithms).toEqual([all, all])
    expect(new Set(asked[0]?.map(({ partition }) => partition)).size).toBe(1)
  })

  it.each([
    [{ refusals: 3, for: "10 minutes" }, { refusals: 3, withinMs: 60_000, forMs: [600_000] }, 600_000],
    [
      { refusals: 3, for: "10 seconds", within: "1 hour" },
      { refusals: 3, withinMs: 3_600_000, forMs: [10_000] },
      3_600_000,
    ],
    [
      { refusals: 3, for: ["1 minute", 120_000, "1h"] },
      { refusals: 3, withinMs: 60_000, forMs: [60_000, 120_000, 3_600_000] },
      3_600_000,
    ],
  ])(
    "configured as %j has a separate counter, whose window is the longest configured time",
    async (...row) => {
      const [penalty, parsed, windowMs] = row
      const clock = manualClock()
      const { store, asked } = listening(clock)
      const limiter = createLimiter({ limit: 1, window: "1 minute", penalty, clock, store, logger: QUIET })
      await limiter.decide(ALICE)
      const identity = JSON.stringify(["default", "ip-1m", ["ip"], "penalty"])
      expect(asked[0]?.[1]?.policy).toEqual({
        name: "ip-1m",
        counter: createHash("sha256").update(identity).digest("base64url").slice(0, 16),
        algorithm: "penalty",
        align: "epoch",
        limit: 3,
        windowMs,
        penalty: parsed,
      })
    },
  )

  it("creates a counter only for clients that were refused", async () => {
    const clock = manualClock()
    const store = memoryStore({ clock })
    const opened = { ...penalized({ store, clock }), clock }
    await decide(opened, 2)
    expect(store.size).toBe(1)
    await decide(opened, 1)
    expect(store.size).toBe(2)
    await opened.limiter.reset(ALICE)
    expect(store.size).toBe(0)
  })

  it("applies within this process while the store is down", async () => {
    const clock = manualClock()
    const store: Store = {
      take: () => Promise.reject(new Error("gone")),
      read: () => Promise.reject(new Error("gone")),
      refund: () => {},
      reset: () => {},
      close: () => {},
    }
    const opened = { ...penalized({ store, clock }), clock }
    const decisions: Decision[] = []
    for (let i = 0; i < 5; i++) decisions.push(await opened.limiter.decide(ALICE))
    expect(decisions.map(({ degraded }) => degraded)).toEqual(Array(5).fill(true))
    expect(decisions.map(told)).toEqual([
      OK,
      OK,
      [false, "quota", MINUTE],
      [false, "quota", MINUTE],
      [false, "penalty", 10 * MINUTE],
    ])
    expect(decisions.map(({ checks }) => checks.length)).toEqual([1, 1, 1, 1, 1])
    clock.advance(10 * MINUTE)
    expect((await opened.limiter.decide(ALICE)).allowed).toBe(true)
  })
})

describe("a rule with countRejected", () => {
  /** Returns the seconds at which a client that sends a request every `everyMs` is admitted under 5 per minute. */
  async function admittedAt(options: LimiterSettings<RequestFacts>, everyMs: number): Promise<number[]> {
    const { clock, limiter } = open({ limit: 5, window: "1 minute", ...options })
    const startMs = clock.now()
    const seconds: number[] = []
    for (let atMs = 0; atMs < 3 * MINUTE; atMs += everyMs) {
      clock.set(startMs + atMs)
      if ((await limiter.decide(ALICE)).allowed) seconds.push(atMs / 1000)
    }
    return seconds
  }

  it.each<{ kind: LimiterSettings<RequestFacts>; forgiving: number; strict: number[] }>([
    { kind: { algorithm: "sliding-log" }, forgiving: 15, strict: [0, 2, 4, 6, 8] },
    { kind: { algorithm: "sliding-window-strict" }, forgiving: 15, strict: [0, 2, 4, 6, 8] },
    { kind: { buckets: 6 }, forgiving: 15, strict: [0, 2, 4, 6, 8] },
    { kind: { algorithm: "sliding-window" }, forgiving: 15, strict: [0, 2, 4, 6, 8] },
    // When a fixed window ends, its refusals are forgotten as well.
    {
      kind: { algorithm: "fixed-window" },
      forgiving: 15,
      strict: [0, 2, 4, 6, 8, 60, 62, 64, 66, 68, 120, 122, 124, 126, 128],
    },
    { kind: { algorithm: "token-bucket" }, forgiving: 19, strict: [0, 2, 4, 6, 8] },
  ])(
    "refuses a client as long as it retries faster than the limit: $kind",
    async ({ kind, forgiving, strict }) => {
      expect(await admittedAt(kind, 2_000)).toHaveLength(forgiving)
      expect(await admittedAt({ ...kind, countRejected: true }, 2_000)).toEqual(strict)
    },
  )

  it("never refuses a client that sends no faster than the limit", async () => {
    for (const algorithm of ["sliding-log", "token-bucket", "fixed-window"] as const) {
      expect(await admittedAt({ algorithm, countRejected: true }, 12_001)).toHaveLength(15)
    }
  })

  it("counts a partial grant once", async () => {
    const { limiter } = open({ limit: 10, window: "1 minute", countRejected: true })
    const grants = []
    for (let i = 0; i < 3; i++) grants.push((await limiter.takeUpTo(ALICE, 7)).cost)
    expect(grants).toEqual([7, 3, 0])
  })

  it("keeps its counts when countRejected is turned off", async () => {
    const clock = manualClock()
    const store = memoryStore({ clock })
    const rule = { limit: 10, window: "1 minute", clock, store, logger: QUIET }
    const before = createLimiter({ ...rule, countRejected: true })
    await before.decide(ALICE, { cost: 8 })
    await before.decide(ALICE, { cost: 5 })
    await before.close()
    expect((await createLimiter(rule).peek(ALICE)).remaining).toBe(0)
  })
})
