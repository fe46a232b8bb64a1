import { createLimiter, InvalidOptionError } from "@sluice/core"
import { describe, expect, it } from "vitest"
import type { RuleSource } from "../source.ts"
import { staticRules } from "../sources/static.ts"
import { liveRules } from "./live-source.ts"

const QUIET = { warn() {}, error() {} }
const RULE = { name: "a", field: "service", limit: 1, window: "1 minute" }
const LOADED = { rules: [RULE], problems: [] }

/** A source with a private field, which a copy of its members would not have. */
class Counted implements RuleSource {
  #loads = 0
  async load() {
    this.#loads++
    return { ...LOADED, version: this.#loads }
  }
}

describe("liveRules", () => {
  it("lets limiters load from an instance of a class", async () => {
    const limiter = createLimiter({ rules: liveRules(new Counted()), onRulesMissing: "deny", logger: QUIET })
    await limiter.ready()
    expect(limiter.rules.version).toBe(1)
    expect((await limiter.decide({})).policy).toBe("a")
    await limiter.close()
  })

  it.each([undefined, null, 5, {}, { load: 5 }])("throws for %j, which is not a source", (source) => {
    expect(() => liveRules(source as never)).toThrow(InvalidOptionError)
    expect(() => liveRules(source as never)).toThrow("is not a rule source")
  })
})

describe("a copy of live rules with other members", () => {
  it("is a separate source", async () => {
    let watched = 0
    const watch = () => {
      watched++
      return () => {}
    }
    const copy = { ...staticRules([RULE]), watch }
    const limiter = createLimiter({ rules: copy, logger: QUIET })
    expect([watched, (await limiter.decide({})).policy]).toEqual([1, "a"])
    await limiter.close()
  })

  it("makes createLimiter throw if it lacks loadSync, because requests could precede the rules", () => {
    const { loadSync: _none, ...rules } = staticRules([RULE])
    expect(() => createLimiter({ rules, logger: QUIET })).toThrow(
      "rules: is a copy of live rules, with or without loadSync() unlike the original; accepted: liveRules(copy)",
    )
    expect(() =>
      createLimiter({ rules: liveRules(rules), onRulesMissing: "deny", logger: QUIET }),
    ).not.toThrow()
  })
})
