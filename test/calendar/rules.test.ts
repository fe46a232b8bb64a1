import type { Decision, Limiter } from "@sluice/core"
import type { Policy, StoreResult } from "@sluice/core/stores"
import { manualClock } from "@sluice/core/testing"
import { describe, expect, it } from "vitest"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { type Asking, storesOn, worldOf } from "./opened.ts"

const { client } = await redisForTests()
const ANN: Asking = { account: "ann" }
const HOUR = 3_600_000
const DAY = 24 * HOUR

/** Decides requests one after the other. Returns the remaining units, or "no" for a refusal. */
async function remaining(
  limiter: Limiter<Asking>,
  ...requests: readonly Asking[]
): Promise<readonly unknown[]> {
  const told: unknown[] = []
  for (const request of requests) {
    const decision = await limiter.decide(request)
    told.push(decision.allowed ? decision.remaining : "no")
  }
  return told
}

describe.each(storesOn(client))("a monthly rule that counts in %s", (_, open) => {
  const opened = (rule: Parameters<typeof worldOf>[1], at: string) => worldOf(open, rule, at)

  it("begins a month by the clock of the store, even if processes are minutes ahead of it or behind", async () => {
    const { clock, start } = opened({ limit: 4 }, "2026-01-31T23:50:00Z")
    const processes = [start(10 * 60_000), start(-10 * 60_000), start()] as const
    for (const each of processes) await each.decide(ANN)
    clock.set(Date.parse("2026-02-01") - 1)
    for (const each of processes) expect((await each.peek(ANN)).remaining).toBe(1)
    await processes[1].decide(ANN)
    for (const each of processes) {
      expect(await each.decide(ANN)).toMatchObject({ allowed: false, retryAfterMs: 1, resetAfterMs: 1 })
    }
    clock.advance(1)
    for (const [i, each] of processes.entries()) {
      expect(await each.decide(ANN)).toMatchObject({ remaining: 3 - i, resetAfterMs: 28 * DAY })
    }
    clock.advance(20 * 60_000)
    for (const each of processes) expect((await each.peek(ANN)).remaining).toBe(1)
  })

  it("counts in the right month after a process was idle for three months", async () => {
    const { clock, start } = opened({ anchor: 31 }, "2026-01-31T12:00:00Z")
    const limiter = start()
    await limiter.decide(ANN)
    clock.set(Date.parse("2026-04-29T23:59:59.999Z"))
    expect(await limiter.decide(ANN)).toMatchObject({ remaining: 9, resetAfterMs: 1 })
    clock.advance(1)
    expect(await limiter.decide(ANN)).toMatchObject({ remaining: 9, resetAfterMs: 31 * DAY })
  })

  it("keeps counting when the anchor changes, until the new period that contains the month's beginning ends", async () => {
    const { clock, start } = opened({ anchor: (request) => request.anchor }, "2026-06-16T00:00:00Z")
    const limiter = start()
    const [first, twentieth] = [
      { ...ANN, anchor: 1 },
      { ...ANN, anchor: 20 },
    ]
    expect(await remaining(limiter, first, first, twentieth)).toEqual([9, 8, 7])
    clock.set(Date.parse("2026-06-20T00:00:00Z"))
    expect(await limiter.decide(twentieth)).toMatchObject({ remaining: 9, resetAfterMs: 30 * DAY })
    // A client whose anchor changes back and forth gets no further units.
    expect(await remaining(limiter, first, twentieth, first, twentieth)).toEqual([8, 7, 6, 5])
    clock.set(Date.parse("2026-07-01T00:00:00Z"))
    expect(await remaining(limiter, twentieth, first, twentieth, first)).toEqual([4, 9, 8, 7])
  })

  it("is cleared once at each boundary, if two processes know different rules of the zone", async () => {
    const clock = manualClock(Date.UTC(2026, 2, 31, 23))
    const store = open(clock)()
    const policyOf = (shiftMs: number): Policy => ({
      ...{ name: "m", counter: "m", algorithm: "fixed-window", align: "epoch", limit: 5, windowMs: 31 * DAY },
      periods: [1, 2, 3, 4].map((month) => Date.UTC(2026, month, 1) + shiftMs),
    })
    const [before, after] = [policyOf(0), policyOf(HOUR)]
    const admitted = async (times: number): Promise<number> => {
      let units = 0
      for (let i = 0; i < times; i++) {
        const checks = [{ policy: i % 2 === 0 ? after : before, partition: "", cost: 1, shadow: false }]
        units += ((await store.take(checks)) as StoreResult).checks[0]?.taken ?? 0
      }
      return units
    }
    expect(await admitted(20)).toBe(5)
    clock.set(Date.UTC(2026, 3, 1, 0, 30))
    expect(await admitted(20)).toBe(5)
    clock.set(Date.UTC(2026, 3, 1, 1, 30))
    expect(await admitted(20)).toBe(5)
    clock.set(Date.UTC(2026, 3, 29))
    expect(await admitted(20)).toBe(0)
  })

  it.each<[what: string, anchor: unknown, day: number, warns: boolean]>([
    ["a day", 15, 15, false],
    ["a day as a string of a database", "15", 15, false],
    ["a timestamp of a database", "2024-02-29T00:00:00.000Z", 29, false],
    ["a Date, read in UTC", new Date("2026-01-15T23:00:00Z"), 15, false],
    ["a promise", Promise.resolve(15), 15, false],
    ["undefined", undefined, 1, false],
    ["a promise of undefined", Promise.resolve(undefined), 1, false],
    ["null", null, 1, true],
    ["no day", 32, 1, true],
    ["a failed promise", "rejects", 1, true],
    ["an error", "throws", 1, true],
    ["a promise that never settles", "hangs", 1, true],
  ])("begins on the day of an anchor function that returns %s", async (_what, anchor, day, warns) => {
    const { clock, start, warnings } = opened(
      {
        anchor() {
          if (anchor === "throws") throw new Error("no database")
          if (anchor === "rejects") return Promise.reject(new Error("no database"))
          return (anchor === "hangs" ? new Promise(() => {}) : anchor) as number
        },
      },
      "2026-01-20T12:00:00Z",
    )
    const decided = start().decide(ANN)
    if (anchor === "hangs") clock.advance(60_000)
    const { resetAfterMs } = await decided
    expect(new Date(clock.now() + resetAfterMs)).toEqual(new Date(Date.UTC(2026, day > 20 ? 0 : 1, day)))
    expect(warnings.length > 0).toBe(warns)
  })

  it("has a month of its own for each client, and for each limit of a limit function", async () => {
    const { clock, start } = opened(
      { anchor: async ({ anchor }) => anchor, limit: async ({ plan = 2 }) => plan },
      "2026-02-14T23:59:59.999Z",
    )
    const limiter = start()
    const [ann, bob] = [
      { ...ANN, anchor: 15 },
      { account: "bob", anchor: 1, plan: 3 },
    ]
    expect(await remaining(limiter, ann, ann, ann, bob)).toEqual([1, 0, "no", 2])
    clock.advance(1)
    expect(await remaining(limiter, ann, bob)).toEqual([1, 1])
    expect(await remaining(limiter, { ...ann, plan: 7 }, ann)).toEqual([5, "no"])
    clock.set(Date.parse("2026-03-01"))
    expect(await remaining(limiter, ann, bob)).toEqual(["no", 2])
  })

  it("applies overrides, allow and deny", async () => {
    const { start } = opened(
      { limit: 2, overrides: { bob: 4 }, allow: ["eve"], deny: ["mallory"] },
      "2026-02-01",
    )
    const limiter = start()
    const names = ["ann", "bob", "mallory"].map((account) => ({ account }))
    expect(await remaining(limiter, ...names)).toEqual([1, 3, "no"])
    for (let i = 0; i < 5; i++) expect((await limiter.decide({ account: "eve" })).allowed).toBe(true)
  })

  it("takes the cost of a request, or what is left", async () => {
    const { start } = opened({ cost: 3 }, "2026-02-01")
    const limiter = start()
    expect(await limiter.decide(ANN)).toMatchObject({ cost: 3, remaining: 7 })
    expect(await limiter.decide(ANN, { cost: 8 })).toMatchObject({ allowed: false, retryAfterMs: 28 * DAY })
    expect(await limiter.takeUpTo(ANN, 9)).toMatchObject({ cost: 7, remaining: 0 })
    expect(await limiter.decide(ANN, { cost: 11 })).toMatchObject({ retryAfterMs: Number.POSITIVE_INFINITY })
  })

  it("counts refused requests, up to the limit, until the month ends", async () => {
    const { clock, start } = opened({ limit: 3, countRejected: true }, "2026-02-28T23:59:59Z")
    const limiter = start()
    await limiter.decide(ANN, { cost: 2 })
    expect((await limiter.decide(ANN, { cost: 2 })).allowed).toBe(false)
    expect(await remaining(limiter, ANN)).toEqual(["no"])
    clock.advance(1_000)
    expect(await remaining(limiter, ANN)).toEqual([2])
  })

  it("is blocked by a penalty beyond the end of the month", async () => {
    const { clock, start } = opened(
      { limit: 1, penalty: { refusals: 2, within: "1 hour", for: "1 day" } },
      "2026-02-28T23:00:00Z",
    )
    const limiter = start()
    expect(await remaining(limiter, ANN, ANN, ANN)).toEqual([0, "no", "no"])
    clock.advance(HOUR)
    expect(await limiter.decide(ANN)).toMatchObject({
      allowed: false,
      refusal: "penalty",
      retryAfterMs: DAY - HOUR,
    })
    clock.advance(DAY - HOUR)
    expect(await remaining(limiter, ANN)).toEqual([0])
  })

  it("never refuses in shadow mode, and reports each threshold once a month", async () => {
    const { clock, start } = opened({ limit: 2, shadow: true, notify: [50, 100] }, "2026-02-28T23:59:59Z")
    const limiter = start()
    const reached: number[] = []
    limiter.on("near-limit", ({ threshold }) => reached.push(threshold))
    const decisions: Decision[] = []
    for (let i = 0; i < 3; i++) decisions.push(await limiter.decide(ANN))
    expect(decisions.map(({ allowed, shadowed }) => [allowed, shadowed.length])).toEqual([
      ...[
        [true, 0],
        [true, 0],
        [true, 1],
      ],
    ])
    clock.advance(1_000)
    for (let i = 0; i < 3; i++) await limiter.decide(ANN)
    expect(reached).toEqual([50, 100, 50, 100])
  })

  it.each([
    ["soft", { kind: "soft", percent: 50 }, 3],
    ["elastic", { kind: "elastic", ceiling: 4, signal: () => true }, 4],
    ["queue", { kind: "queue" }, 2],
  ] as const)(
    "admits as many requests as its %s throttle says, in each month",
    async (_kind, throttle, most) => {
      const { clock, start } = opened({ limit: 2, throttle }, "2026-02-28T23:59:59Z")
      const limiter = start()
      for (let month = 0; month < 2; month++) {
        const decisions: Decision[] = []
        for (let i = 0; i < 6; i++) decisions.push(await limiter.decide(ANN))
        expect(decisions.map(({ allowed, overLimit }) => [allowed, overLimit])).toEqual(
          Array.from({ length: 6 }, (_each, i) => [i < most, i >= 2 && i < most]),
        )
        clock.advance(1_000)
      }
    },
  )

  it("gives units back to their own month only", async () => {
    const { clock, start } = opened({}, "2026-02-28T23:59:59Z")
    const [one, other] = [start(), start()]
    const [first, second, third] = [
      await one.decide(ANN, { cost: 3 }),
      await one.decide(ANN, { cost: 2 }),
      await other.decide(ANN, { cost: 2 }),
    ]
    await one.refund(first)
    expect((await one.peek(ANN)).remaining).toBe(6)
    clock.advance(1_000)
    await one.decide(ANN, { cost: 4 })
    await one.refund(second)
    await other.settle(third, 1)
    expect((await one.peek(ANN)).remaining).toBe(6)
    clock.set(Date.parse("2026-07-04"))
    const july = await one.decide(ANN, { cost: 4 })
    await other.decide(ANN, { cost: 5 })
    await one.settle(july, 5)
    expect((await other.peek(ANN)).remaining).toBe(0)
  })

  it("makes a request wait for the whole month, longer than a timer can", async () => {
    const { clock, start } = opened({ limit: 1 }, "2026-01-01T00:00:00Z")
    const limiter = start()
    await limiter.decide(ANN)
    let isAdmitted = false
    const waiting = limiter.acquire(ANN, { maxWaitMs: 40 * DAY }).then((decision) => {
      isAdmitted = true
      return decision
    })
    for (const day of [25, 30.999]) {
      // The wait begins when the store has refused the request.
      for (let i = 0; i < 20; i++) await limiter.peek(ANN)
      clock.set(Date.UTC(2026, 0, 1) + day * DAY)
      for (let i = 0; i < 20; i++) await limiter.peek(ANN)
      expect(isAdmitted).toBe(false)
    }
    clock.set(Date.UTC(2026, 1, 1))
    expect(await waiting).toMatchObject({ allowed: true, resetAfterMs: 28 * DAY })
  })
})
