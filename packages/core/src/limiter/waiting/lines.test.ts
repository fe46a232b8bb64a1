import { describe, expect, it } from "vitest"
import { ruleCheck } from "../../decision/testing/rule-checks.ts"
import { Lines } from "./lines.ts"

describe("a line that no request needs", () => {
  const one = ruleCheck("one", 1)

  it("is removed, so that its counter uses no memory", () => {
    const lines = new Lines()
    const line = lines.at(one)
    lines.forget(line)
    expect(lines.find(one)).toBeUndefined()
  })

  it("is removed only once, so that a new line of the same counter stays", () => {
    const lines = new Lines()
    const line = lines.at(one)
    lines.forget(line)
    const next = lines.at(one)
    lines.forget(line)
    expect(lines.find(one)).toBe(next)
  })
})
