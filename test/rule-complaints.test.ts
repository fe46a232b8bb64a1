import { setImmediate as nextTurn } from "node:timers/promises"
import { createLimiter, type LimiterOptions, memoryStore, type RequestFacts } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { type LoadedRules, liveRules } from "@sluice/rules"
import { describe, expect, it, onTestFinished } from "vitest"

const HOUR = 3_600_000

const rule = (name: string) => ({ name, field: "ip", limit: 2, window: "1 hour" })
const wrong = (name: string) => ({ path: "rules[1].window", message: "is wrong", rule: name })

/** Creates a limiter on a source that the test changes, and records its log. */
function setUp(stored: LoadedRules | Error, more: LimiterOptions<RequestFacts> = {}) {
  const clock = manualClock()
  const store = memoryStore({ clock })
  const said: string[] = []
  const log = ({ code }: { readonly code: string }, message: string): void =>
    void said.push(`${code} ${message}`)
  const logger = { warn: log, error: log }
  const place = { stored }
  const source = {
    name: "the table",
    pollMs: 60_000,
    async load() {
      if (place.stored instanceof Error) throw place.stored
      return place.stored
    },
  }
  // A rule of another limiter on the same store uses this rule's name.
  const open = (name: string) =>
    createLimiter({ service: "shop", name, limit: 1, window: "1 hour", store, clock, logger })
  const make = () => {
    const limiter = createLimiter({
      ...{ service: "shop", rules: liveRules(source), onRulesMissing: "allow", store, clock, logger },
      ...more,
    })
    onTestFinished(() => limiter.close())
    return limiter
  }
  /** Returns the lines that are logged while the clock advances by this many hours. */
  const logged = async (hours: number): Promise<string[]> => {
    said.length = 0
    for (let i = 0; i < hours * 10; i++) {
      clock.advance(HOUR / 10)
      await nextTurn()
    }
    return said.splice(0)
  }
  return { clock, said, place, open, make, logged }
}

const LEFT_OUT =
  /^SLUICE_RULES_REJECTED the table, service "shop": some rules are left out, because rule "y" /
const WITHOUT_Y: LoadedRules = { rules: [rule("x")], problems: [wrong("y")] }

describe("the log", () => {
  it("states once that all rules of a service were removed, and again if they return and are removed", async () => {
    const { said, place, make, logged } = setUp({ rules: [rule("x"), rule("y")], problems: [], version: 7 })
    const limiter = make()
    await limiter.ready()
    for (let time = 0; time < 2; time++) {
      expect(said.splice(0)).toEqual([])
      place.stored = { rules: [], problems: [], version: 8 }
      await limiter.refresh()
      await limiter.refresh()
      expect(said.splice(0)).toEqual([
        `SLUICE_RULES_REMOVED the table, service "shop": all rules were removed, so none limits requests now. Before: version 7 with the rules "x", "y". If this is a mistake, store rules again. (@sluice/core/errors/sluice_rules_removed.md)`,
      ])
      expect(await logged(2)).toEqual([])
      place.stored = { rules: [rule("x"), rule("y")], problems: [], version: 7 }
      await limiter.refresh()
    }
  })

  it("states that a service's rules have disappeared from the source, but not that they never existed", async () => {
    const { said, place, make } = setUp({ rules: [], problems: [] })
    const limiter = make()
    await limiter.ready()
    place.stored = { rules: [], problems: [], version: 1 }
    await limiter.refresh()
    place.stored = { rules: [rule("x")], problems: [] }
    await limiter.refresh()
    expect(said.splice(0)).toEqual([])
    place.stored = { rules: [], problems: [] }
    await limiter.refresh()
    expect(said).toEqual([expect.stringMatching(/^SLUICE_RULES_REMOVED .* Before: the rule "x"\./)])
  })

  it("repeats after an outage that a rule is skipped, but not that the source cannot be read", async () => {
    const { said, place, make, logged } = setUp(WITHOUT_Y)
    const limiter = make()
    await limiter.ready()
    expect(said.splice(0)).toEqual([expect.stringMatching(LEFT_OUT)])
    place.stored = new Error("no connection")
    await expect(limiter.refresh()).rejects.toThrow("no connection")
    expect(said.splice(0)).toEqual([expect.stringContaining("no connection")])
    place.stored = WITHOUT_Y
    await limiter.refresh()
    expect(said.splice(0)).toEqual([expect.stringMatching(LEFT_OUT)])
    expect(await logged(3)).toEqual(Array(3).fill(expect.stringMatching(LEFT_OUT)))
  })

  it("repeats that a rule is skipped after a later version was rejected and withdrawn", async () => {
    const { said, place, make, logged } = setUp(WITHOUT_Y)
    const limiter = make()
    await limiter.ready()
    place.stored = { rules: [], problems: [wrong("x")] }
    await expect(limiter.refresh()).rejects.toThrow("is wrong")
    expect(said.at(-1)).toContain('the stored rules are rejected, because rule "x" is invalid')
    place.stored = { ...WITHOUT_Y }
    await limiter.refresh()
    expect(await logged(2)).toEqual(Array(2).fill(expect.stringMatching(LEFT_OUT)))
  })

  it("states that no rules are in force after a rejected version was deleted", async () => {
    const { said, place, make, logged } = setUp({ rules: [rule("x")], problems: [] })
    const limiter = make()
    await limiter.ready()
    place.stored = { rules: [], problems: [wrong("x")] }
    await expect(limiter.refresh()).rejects.toThrow("is wrong")
    place.stored = { rules: [], problems: [] }
    await limiter.refresh()
    expect(said.at(-1)).toMatch(
      /^SLUICE_RULES_RECOVERED the table, service "shop": the stored rules can be used again\. In force now: no rules, because none are stored\./,
    )
    expect(await logged(2)).toEqual([])
  })
})

describe("the rules that stay in force", () => {
  it.each<[string, LoadedRules, string]>([
    [
      "with the names of twenty rules and the number of the others",
      { rules: Array.from({ length: 23 }, (_, i) => rule(`r${i}`)), problems: [], version: 4 },
      `version 4 with the rules ${Array.from({ length: 20 }, (_, i) => `"r${i}"`).join(", ")} and 3 more.`,
    ],
    ["as no rules if there are none", { rules: [], problems: [], version: 4 }, "version 4 with no rules."],
  ])("are logged %s", async (_what, stored, inForce) => {
    const { said, place, make } = setUp(stored)
    const limiter = make()
    await limiter.ready()
    place.stored = { rules: [], problems: [wrong("x")], version: 5 }
    await expect(limiter.refresh()).rejects.toThrow("is wrong")
    expect(said.at(-1)).toContain(`The previous rules stay in force: ${inForce}`)
  })
})

describe("a version of the rules with a rule name that another limiter already uses", () => {
  it("is reported every hour with the rules in force, until it is corrected", async () => {
    const { said, place, open, make, logged } = setUp({ rules: [rule("x")], problems: [], version: 1 })
    open("login")
    const limiter = make()
    await limiter.ready()
    place.stored = { rules: [rule("x"), rule("login")], problems: [], version: 2 }
    await expect(limiter.refresh()).rejects.toThrow("another limiter")
    const rejected = expect.stringMatching(
      /^SLUICE_RULES_REJECTED the table, service "shop": .*another limiter already counts rule "login".*\nThe previous rules stay in force: version 1 with the rule "x"\./s,
    )
    expect(said.splice(0)).toEqual([rejected])
    expect(await logged(2)).toEqual([rejected, rejected])
    place.stored = { rules: [rule("x")], problems: [], version: 3 }
    await limiter.refresh()
    expect(said.splice(0)).toEqual([
      expect.stringMatching(
        /^SLUICE_RULES_RECOVERED .*service "shop".* In force now: version 3 with the rule "x"\./,
      ),
    ])
    expect(await logged(2)).toEqual([])
  })

  it.each<[string, LimiterOptions<RequestFacts>, string]>([
    [
      "admits all requests",
      { onRulesMissing: "allow" },
      "No rules are in force yet, so every request is admitted.",
    ],
    [
      "refuses all requests",
      { onRulesMissing: "deny" },
      "No rules are in force yet, so every request is refused.",
    ],
    [
      "has default rules",
      { onRulesMissing: undefined, defaultRules: [rule("d")] },
      'None of the stored rules are in force yet. The default rules stay in force: the rule "d".',
    ],
  ])(
    "is reported with what applies instead if it is the first version: the limiter %s",
    async (_what, more, inForce) => {
      const { said, open, make } = setUp({ rules: [rule("login")], problems: [] }, more)
      const other = open("login")
      const limiter = make()
      await expect(limiter.ready()).rejects.toThrow("another limiter")
      expect(said.splice(0)).toEqual([expect.stringContaining(inForce)])
      const waiting = limiter.ready({ retry: true })
      await nextTurn()
      await other.close()
      await waiting
      expect(said.splice(0)).toEqual([expect.stringContaining('In force now: the rule "login".')])
      expect(limiter.rules.isRejected).toBe(false)
    },
  )

  it("is not reported after the limiter has been closed", async () => {
    const { open, make, logged } = setUp({ rules: [rule("login")], problems: [] })
    open("login")
    const limiter = make()
    await expect(limiter.ready()).rejects.toThrow("another limiter")
    await limiter.close()
    expect(await logged(2)).toEqual([])
  })
})
