import { describe, expect, it } from "vitest"
import type { Decision } from "../../decision/decision.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"
import { deciderOver, ruleCheck, SECOND } from "../../decision/testing/rule-checks.ts"
import { manualClock } from "../../ground/clock.ts"
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

  it("that queues, even if a shadow rule would refuse for longer", async () => {
    expect(await refusedBy([free, short, shadow])).toBe("short")
    expect(await refusedBy([shadow, free, short])).toBe("short")
  })
})
