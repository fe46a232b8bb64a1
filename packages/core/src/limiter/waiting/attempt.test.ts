import { describe, expect, it } from "vitest"
import type { Decision } from "../../decision/decision.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"
import { deciderOver, ruleCheck, SECOND } from "../../decision/testing/rule-checks.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import { longestRefusal, startAttempt } from "./attempt.ts"

describe("among the rules that refuse, a request waits for the rule", () => {
  const full = (name: string, windowMs: number): RuleCheck => ruleCheck(name, 1, 1, { windowMs })
  const [free, short, long] = [ruleCheck("free", 9), full("short", SECOND), full("long", 60 * SECOND)]
  const shadow = { ...full("shadow", 3_600 * SECOND), shadow: true }

  async function refusedBy(ruleChecks: readonly RuleCheck[], at = 0): Promise<string> {
    const clock = manualClock()
    const decider = deciderOver(memoryStore({ clock }), clock)
    const decide = (): Decision | Promise<Decision> => decider.take(ruleChecks)
    expect((await decide()).allowed).toBe(true)
    clock.advance(at)
    const awaited = ruleChecks.filter((each) => !each.shadow)
    return longestRefusal(startAttempt(ruleChecks), await decide(), awaited).ruleCheck.policy.name
  }

  it("that refuses for the longest, wherever it is in the list", async () => {
    expect(await refusedBy([free, short, long])).toBe("long")
    expect(await refusedBy([long, free, short])).toBe("long")
  })

  it("that comes first in the list, if several refuse for the same time", async () => {
    expect(await refusedBy([free, short, full("as short", SECOND)])).toBe("short")
  })

  it("that refuses for only a millisecond, if it is the only one", async () => {
    expect(await refusedBy([free, short], SECOND - 1)).toBe("short")
  })

  it("that has no units for longer than a permit is missing, wherever it is in the list", async () => {
    const permits = ruleCheck("permits", 1, 1, { algorithm: "in-flight" })
    for (const ruleChecks of [
      [permits, short],
      [short, permits],
    ]) {
      const decider = deciderOver(memoryStore({ clock: manualClock() }), manualClock())
      await decider.take(ruleChecks)
      const refused = await decider.take(ruleChecks)
      expect(longestRefusal(startAttempt(ruleChecks), refused, ruleChecks)).toMatchObject({
        ...{ ruleCheck: short, trustedMs: SECOND, mayEndSooner: false },
      })
    }
  })

  it("of permits for 5 ms, and for longer after each attempt, but as long as a block lasts", async () => {
    const clock = manualClock()
    const decider = deciderOver(memoryStore({ clock }), clock)
    const permits = ruleCheck("permits", 1, 1, { algorithm: "in-flight" })
    await decider.take([permits])
    const refused = await decider.take([permits])
    const first = startAttempt([permits])
    const longest = (attempt = first, decision = refused) => longestRefusal(attempt, decision, [permits])
    expect(longest()).toEqual({ ruleCheck: permits, trustedMs: 5, mayEndSooner: true })
    expect(longest(startAttempt([permits], first)).trustedMs).toBe(10)
    const checks = refused.checks.map((check) => ({
      ...check,
      refusal: "blocked" as const,
      retryAfterMs: SECOND,
    }))
    expect(longest(first, { ...refused, checks })).toMatchObject({ trustedMs: SECOND, mayEndSooner: false })
  })

  it("that queues, even if a shadow rule would refuse for longer", async () => {
    expect(await refusedBy([free, short, shadow])).toBe("short")
    expect(await refusedBy([shadow, free, short])).toBe("short")
  })
})
