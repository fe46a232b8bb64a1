import { describe, expect, it } from "vitest"
import type { Decision } from "../../decision/decision.ts"
import type { Ask } from "../../decision/rule-check.ts"
import { ask, deciderOver, SECOND } from "../../decision/testing/asks.ts"
import { manualClock } from "../../ground/clock.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import { Attempt } from "./attempt.ts"

describe("of those that refuse, who waits waits for the one", () => {
  const full = (name: string, windowMs: number): Ask => ask(name, 1, 1, { windowMs })
  const [free, short, long] = [ask("free", 9), full("short", SECOND), full("long", 60 * SECOND)]
  const shadow = { ...full("shadow", 3_600 * SECOND), shadow: true }

  async function refusedBy(asks: readonly Ask[], at = 0): Promise<string | undefined> {
    const clock = manualClock()
    const decider = deciderOver(memoryStore({ clock }), clock)
    const decide = (): Decision | Promise<Decision> => decider.take(asks)
    expect((await decide()).allowed).toBe(true)
    clock.advance(at)
    const awaited = asks.filter((each) => !each.shadow)
    return new Attempt(asks).refusedBy(await decide(), awaited)?.policy.name
  }

  it("that does so for longest, wherever it stands", async () => {
    expect(await refusedBy([free, short, long])).toBe("long")
    expect(await refusedBy([long, free, short])).toBe("long")
  })

  it("that comes first, where they do for as long", async () => {
    expect(await refusedBy([free, short, full("as short", SECOND)])).toBe("short")
  })

  it("that refuses for a millisecond only, where there is no other", async () => {
    expect(await refusedBy([free, short], SECOND - 1)).toBe("short")
  })

  it("that is waited for, though a shadow rule would refuse for longer", async () => {
    expect(await refusedBy([free, short, shadow])).toBe("short")
    expect(await refusedBy([shadow, free, short])).toBe("short")
  })
})
