import { describe, expect, it } from "vitest"
import { manualClock } from "../../ground/manual-clock.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { CalendarRule } from "../../rules/rule.ts"
import { createLimiter } from "../create-limiter.ts"

interface Asking extends RequestFacts {
  readonly user?: string
  readonly limit?: number
}

/** Returns a limiter by user on 15 January 2026, with its clock and its warnings. */
function open(rule: Partial<CalendarRule<Asking>>, nowMs = Date.UTC(2026, 0, 15)) {
  const clock = manualClock(nowMs)
  const limiter = createLimiter<Asking>({
    clock,
    fields: { user: ({ user }) => user },
    rules: [{ name: "plan", field: "user", limit: 10, per: "month", ...rule }],
    logger: { warn() {}, error() {} },
  })
  const warned: string[] = []
  limiter.on("warning", ({ message }) => warned.push(message))
  return { clock, limiter, warned }
}

const TERABYTES = 5_000_000_000_000

describe("a limit per calendar period", () => {
  it.each(["day", "week", "month", "year"] as const)("of a %s may be terabytes", async (per) => {
    const { limiter } = open({ per, limit: ({ limit = TERABYTES }) => limit })
    const request = { user: "ada" }
    expect(await limiter.decide(request, { cost: TERABYTES - 1 })).toMatchObject({ remaining: 1 })
    expect(await limiter.decide(request, { cost: 2 })).toMatchObject({ allowed: false, limit: TERABYTES })
    await open({ per, limit: TERABYTES, throttle: { kind: "soft", percent: 10 } }).limiter.close()
  })

  it("is at most half of 2^53, and a function's larger limit is cut to that", async () => {
    const most = (2 ** 53 - 2) / 2
    expect(() => open({ limit: most + 1 })).toThrow(
      `limit: ${most + 1} is too many to count exactly; accepted: units up to ${most}`,
    )
    const { limiter } = open({ limit: () => 2 ** 53 - 1 })
    expect((await limiter.peek({ user: "ada" })).limit).toBe(most)
  })

  it("has a default ceiling above its limit, if units are admitted while there is spare capacity", async () => {
    const { limiter } = open({ limit: TERABYTES, throttle: { kind: "elastic", signal: () => true } })
    expect(await limiter.decide({ user: "ada" }, { cost: TERABYTES * 2 })).toMatchObject({ allowed: true })
  })
})

describe("an anchor by a function", () => {
  /** Opens a limiter whose anchor function returns this value, or fails if it is an error. */
  function anchored(day: unknown) {
    let returned = day
    const opened = open({
      anchor: () => {
        if (returned instanceof Error) throw returned
        return returned as number
      },
    })
    const returns = (value: unknown): void => {
      returned = value
    }
    return { ...opened, returns }
  }

  it("that fails is the client's latest anchor, so that the client's units stay counted", async () => {
    const { limiter, returns, warned } = anchored(20)
    await limiter.decide({ user: "ada" }, { cost: 4 })
    await limiter.grant({ user: "ada" }, 5)
    const before = await limiter.peek({ user: "ada" })
    returns(new Error("no database"))
    expect(await limiter.peek({ user: "ada" })).toEqual(before)
    expect(await limiter.decide({ user: "ada" }, { cost: 2 })).toMatchObject({ limit: 15, remaining: 9 })
    returns(18)
    await limiter.peek({ user: "ada" })
    returns("no day")
    expect((await limiter.peek({ user: "ada" })).checks[0]?.counts?.current).toBe(6)
    expect(warned).toEqual([
      expect.stringContaining(
        "Until it does, the day that it last returned for the client in this process applies, or else the first day.",
      ),
    ])
  })

  it("that fails is the first day for other clients, and for those whose latest anchor was undefined", async () => {
    const { limiter, returns, clock } = anchored(20)
    await limiter.peek({ user: "ada" })
    returns(undefined)
    await limiter.peek({ user: "ada" })
    returns(Promise.reject(new Error("no database")))
    for (const user of ["ada", "bob"]) {
      const { resetAfterMs } = await limiter.decide({ user })
      expect(clock.now() + resetAfterMs).toBe(Date.UTC(2026, 1, 1))
    }
  })

  it("is remembered for the 100,000 clients that were given it last", async () => {
    const { limiter, returns, clock } = anchored(20)
    for (let i = 0; i <= 100_000; i++) await limiter.peek({ user: `u${i}` })
    returns(new Error("no database"))
    const ends = async (user: string) => clock.now() + (await limiter.decide({ user })).resetAfterMs
    expect(await ends("u0")).toBe(Date.UTC(2026, 1, 1))
    expect(await ends("u1")).toBe(Date.UTC(2026, 0, 20))
  })
})

describe("a request that waits for days", () => {
  it.each<[string, Partial<CalendarRule<Asking>>]>([
    ["a rule", {}],
    ["an elastic rule", { throttle: { kind: "elastic", signal: () => false } }],
  ])("under %s is admitted when its day begins, also after a day of 25 hours", async (_rule, more) => {
    const { clock, limiter } = open({ ...more, limit: 1, per: "day", timeZone: "Europe/Berlin" })
    clock.set(Date.UTC(2026, 9, 24, 12))
    const admitted: string[] = []
    const waiting = Array.from({ length: 7 }, async () => {
      await limiter.acquire({ user: "ada" })
      admitted.push(new Date(clock.now()).toISOString().slice(0, 16))
    })
    while (admitted.length < waiting.length) {
      await new Promise(setImmediate)
      clock.advance(3_600_000)
    }
    expect(admitted).toEqual([
      "2026-10-24T12:00",
      "2026-10-24T22:00",
      ...[25, 26, 27, 28, 29].map((day) => `2026-10-${day}T23:00`),
    ])
  })
})
