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
