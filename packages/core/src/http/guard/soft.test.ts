import { describe, expect, it } from "vitest"
import type { Decision } from "../../decision/decision.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import { createLimiter } from "../../limiter/create-limiter.ts"
import type { LimiterOptions } from "../../limiter/options/options.ts"
import { KINDS_OF_RULE } from "../../limiter/rule-set/testing/kinds-of-rule.ts"
import type { Rule } from "../../rules/rule.ts"

const QUIET = { warn() {}, error() {} }
const MINUTE = 60_000
const CLIENT = { remoteAddress: "192.0.2.1" }

/** 500 per minute, and 5 % above it. */
const SOFT = { name: "soft", limit: 500, window: MINUTE, throttle: { kind: "soft", percent: 5 } } as const

function limiterWith(more: Partial<Rule> = {}) {
  const clock = manualClock()
  return {
    clock,
    limiter: createLimiter({ ...SOFT, ...more, clock, logger: QUIET } as LimiterOptions<object>),
  }
}

describe.each(KINDS_OF_RULE)("a soft limit of 500 a minute plus 5 percent under %s", (_name, rule) => {
  it("admits 525 requests and marks the last 25, also in events", async () => {
    const { limiter } = limiterWith(rule)
    const emitted: Decision[] = []
    limiter.on("decision", (decision) => emitted.push(decision))
    const decisions: Decision[] = []
    for (let i = 0; i < 600; i++) decisions.push(await limiter.decide(CLIENT))
    expect(emitted).toEqual(decisions)
    expect(decisions.map(({ allowed }) => allowed)).toEqual(decisions.map((_, i) => i < 525))
    expect(decisions.map(({ overLimit }) => overLimit)).toEqual(decisions.map((_, i) => i >= 500 && i < 525))
    expect(decisions.map(({ checks }) => checks[0]?.overLimit)).toEqual(
      decisions.map(({ overLimit }) => overLimit),
    )
    expect(decisions.map(({ remaining }) => remaining)).toEqual(decisions.map((_, i) => Math.max(0, 499 - i)))
    expect(new Set(decisions.map(({ limit }) => limit))).toEqual(new Set([500]))
  })

  it("marks a request that is partly above the limit, and refuses a request beyond 525 units", async () => {
    const { limiter } = limiterWith(rule)
    const rows: unknown[] = []
    for (const cost of [499, 2, 25, 24, 1, 526]) {
      const peeked = await limiter.peek(CLIENT, { cost })
      const { allowed, overLimit, remaining, refusal } = await limiter.decide(CLIENT, { cost })
      expect([peeked.allowed, peeked.overLimit, peeked.refusal]).toEqual([allowed, overLimit, refusal])
      rows.push([cost, allowed, overLimit, remaining, refusal])
    }
    expect(rows).toEqual([
      [499, true, false, 1, undefined],
      [2, true, true, 0, undefined],
      [25, false, false, 0, "quota"],
      [24, true, true, 0, undefined],
      [1, false, false, 0, "quota"],
      [526, false, false, 0, "cost"],
    ])
  })

  it("reports exact waits for the next admission, the next unit within the limit and the reset", async () => {
    const { limiter, clock } = limiterWith(rule)
    await limiter.decide(CLIENT, { cost: 500 })
    const over = await limiter.decide(CLIENT, { cost: 25 })
    const refused = await limiter.decide(CLIENT)
    // Waiting exactly `retryAfterMs` is enough, and a millisecond less is not.
    clock.advance(refused.retryAfterMs - 1)
    expect((await limiter.peek(CLIENT)).allowed).toBe(false)
    clock.advance(1)
    expect((await limiter.peek(CLIENT)).allowed).toBe(true)
    // `nextUnitAfterMs` refers to the limit, so a client that follows it stays within the limit.
    const { nextUnitAfterMs } = over.checks[0] ?? {}
    clock.advance((nextUnitAfterMs as number) - refused.retryAfterMs - 1)
    expect((await limiter.peek(CLIENT)).remaining).toBe(0)
    clock.advance(1)
    expect(await limiter.peek(CLIENT)).toMatchObject({ overLimit: false, allowed: true })
    clock.advance(over.resetAfterMs - (nextUnitAfterMs as number) - 1)
    expect((await limiter.peek(CLIENT)).remaining).toBeLessThan(500)
    clock.advance(1)
    expect((await limiter.peek(CLIENT)).remaining).toBe(500)
  })
})
