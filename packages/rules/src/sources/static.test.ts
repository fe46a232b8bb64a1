import { InvalidRuleError, type Rule } from "@sluice/core"
import { expect, test } from "vitest"
import { staticRules } from "./static.ts"

test("staticRules returns the same rules, with their functions, for every service", async () => {
  const limit = () => 5
  const source = staticRules([{ field: "service", limit, window: "1m" }])
  expect(await source.load("a")).toEqual({
    rules: [{ field: "service", limit, window: "1m" }],
    problems: [],
  })
  expect(await source.load("b")).toBe(await source.load("a"))
})

test("staticRules keeps its rules when the caller changes the given array", async () => {
  const rules: Rule[] = [{ field: "service", limit: 5, window: "1m" }]
  const source = staticRules(rules)
  rules.pop()
  expect((await source.load("a")).rules).toHaveLength(1)
})

test("staticRules throws for invalid rules, with every problem", () => {
  const wrong = [
    { field: "ip", limit: 0, window: "1m" },
    { field: "ip", limit: 5, window: "soon" },
  ]
  expect(() => staticRules(wrong)).toThrow(InvalidRuleError)
  expect(() => staticRules(wrong)).toThrow(/rules\[0\]\.limit.*\n.*rules\[1\]\.window/)
  const fieldless: unknown[] = [{ limit: 5, window: "1m" }]
  expect(() => staticRules(fieldless as Rule[])).toThrow(
    'rules[0].field: is missing; accepted: "ip" to limit each client address, "service"',
  )
})
