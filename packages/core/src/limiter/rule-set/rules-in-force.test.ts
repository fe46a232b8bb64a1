import { createRuleBook, liveRules, type RuleSource } from "@sluice/rules"
import { describe, expect, it, onTestFinished } from "vitest"
import type { Edition } from "../../rules/live-rules.ts"
import { requireRules } from "../../rules/parsing/parse-rule.ts"
import type { Rule } from "../../rules/rule.ts"
import { LimiterState } from "../checking/limiter-state.ts"
import type { LimiterOptions } from "../options/options.ts"
import { parseInlineRule, parseOptions } from "../options/parse-options.ts"
import { RulesInForce } from "./rules-in-force.ts"

const QUIET = { warn() {}, error() {} }
const OWN = { name: "own", limit: 5, window: "1m" }

const listOf = (count: number): Rule[] =>
  Array.from({ length: count }, (_, index) => ({ name: `r${index}`, field: "ip", limit: 5, window: "1m" }))

function inForce(options: LimiterOptions<unknown>, routes: RulesInForce[] = []): RulesInForce {
  const parsed = parseOptions({ logger: QUIET, ...options })
  const rules = new RulesInForce(parsed, new LimiterState(parsed), () => routes)
  onTestFinished(() => rules.close())
  return rules
}

describe("new rules", () => {
  it.each([
    [100, 0, "immediately"],
    [101, 0, "in slices"],
    [50, 1, "immediately"],
    [51, 1, "in slices"],
  ])("of a limiter with %d rules and %d routes are compiled %s", async (count, routeCount, how) => {
    const routes: RulesInForce[] = []
    const rules = inForce({ rules: [] }, routes)
    const own = parseInlineRule(OWN, { amountOf: () => 1, unitNames: undefined }).rule ?? expect.unreachable()
    for (let i = 0; i < routeCount; i++) routes.push(rules.ofRoute(own))
    const compiled = rules.compileAll({ rules: requireRules(listOf(count), "rules") } as Edition, false)
    expect(compiled instanceof Promise ? "in slices" : "immediately").toBe(how)
    const enforce = await compiled
    enforce()
    expect(rules.current.rules).toHaveLength(count)
    for (const route of routes) expect(route.current.rules).toHaveLength(count + 1)
  })
})

describe("many rules of a local source", () => {
  const loaded = { rules: listOf(150), problems: [] }
  const source: RuleSource & { loadSync(): typeof loaded } = {
    load: async () => loaded,
    loadSync: () => loaded,
  }

  it.each([
    ["in force when the limiter is created", "allow", 150],
    ["compiled in slices if requests are refused until then", "deny", 0],
  ] as const)("are %s", async (_what, onRulesMissing, count) => {
    const rules = inForce({ rules: liveRules(source), onRulesMissing })
    expect(rules.current.rules).toHaveLength(count)
    await rules.ready({})
    expect(rules.current.rules).toHaveLength(150)
  })
})

describe("the first requests", () => {
  it("wait for the rules of a book, unless the book has failed to load them", async () => {
    const book = createRuleBook({
      source: { load: () => Promise.reject(new Error("no table")) },
      logger: QUIET,
    })
    onTestFinished(() => book.close())
    const earlier = inForce({ rules: book, onRulesMissing: "allow" })
    expect(earlier.live?.first).toBeInstanceOf(Promise)
    await expect(earlier.ready({})).rejects.toThrow("no table")
    const later = inForce({ rules: book, onRulesMissing: "allow" })
    expect(later.live?.first).toBeUndefined()
  })
})
