import { create, fromBinary, fromJson, toBinary, toJson } from "@bufbuild/protobuf"
import fc from "fast-check"
import { expect, test } from "vitest"
import { parseRules } from "../../packages/core/src/rules/parsing/parse-rule.ts"
import { RULE_MEMBERS } from "../../packages/core/src/rules/parsing/rule-members.ts"
import type { Rule, RuleMatch, StorableRule } from "../../packages/core/src/rules/rule.ts"
import { goodRules } from "../../packages/core/src/rules/testing/good-rules.ts"
import { ruleMessages, rulesOf, sayTheSame } from "../../packages/service/src/contract/rule-messages.ts"
import {
  type Rule as RuleMessage,
  RuleSchema,
} from "../../packages/service/src/gen/sluice/v1/rate_limiter_pb.ts"

const messagesOf = (rules: readonly StorableRule[]): Promise<RuleMessage[]> =>
  ruleMessages({ service: "1", rules })
const overGrpc = (message: RuleMessage): RuleMessage => fromBinary(RuleSchema, toBinary(RuleSchema, message))
const overHttp = (message: RuleMessage): RuleMessage =>
  fromJson(RuleSchema, JSON.parse(JSON.stringify(toJson(RuleSchema, message))))

/** A rule in a message contains no functions. */
const matchFields = (match: Rule["match"]) => (match as RuleMatch | undefined)?.fields

/** Removes empty lists, because a message cannot contain them and they mean the same as absent lists. */
const withoutEmpty = ({ allow, deny, match, ...rule }: Rule): Rule => ({
  ...rule,
  ...(allow?.length !== 0 && { allow }),
  ...(deny?.length !== 0 && { deny }),
  ...(match !== undefined && {
    match: {
      ...match,
      fields: Object.keys(matchFields(match) ?? {}).length > 0 ? matchFields(match) : undefined,
    },
  }),
})

/** Returns the rules in a normalized form, without the unit of a window, which a message may change. */
const meaningOf = (rules: readonly StorableRule[]) => {
  const { rules: parsed, problems } = parseRules(rules, "rules")
  return { rules: parsed.map(({ lacksUnit: _, ...rule }) => rule), problems }
}

test("rules with any members are unchanged after conversion to messages and back, over gRPC and HTTP", async () => {
  const seen = new Set<string>()
  await fc.assert(
    fc.asyncProperty(goodRules, async (rules) => {
      for (const each of rules)
        for (const [name, value] of Object.entries(each)) if (value !== undefined) seen.add(name)
      const messages = await messagesOf(rules)
      const kept = meaningOf(rules.map(withoutEmpty))
      for (const way of [overGrpc, overHttp]) {
        const back = await rulesOf(messages.map(way), "rules")
        expect(meaningOf(back)).toEqual(kept)
        expect(await messagesOf(back)).toEqual(messages)
        expect(await sayTheSame("1", rules, back)).toBe(true)
      }
    }),
    { numRuns: 500 },
  )
  // Check that all members occur. Otherwise, this test would miss a new member.
  expect([...seen].sort()).toEqual(Object.keys(RULE_MEMBERS).sort())
})

test("an empty list of clients means the same as no list", () => {
  const size = { limit: 5, window: "1 minute", field: "ip" } as const
  const [empty, none] = [
    { ...size, allow: [], deny: [], match: { fields: {} } },
    { ...size, match: {} },
  ].map((rule) => parseRules([rule], "rules").rules[0])
  expect(empty).toMatchObject({ ...none, allow: [], deny: [] })
})

test("a rule with both field and fields is refused, and the error names the rule's position", async () => {
  const message = create(RuleSchema, { field: "ip", fields: ["a", "b"], limit: 5n, window: "1 minute" })
  const problem = "fields: is given together with field; give only one of them"
  await expect(rulesOf([message], "rule")).rejects.toThrow(`rule.${problem}`)
  await expect(rulesOf([message], "rules")).rejects.toThrow(`rules[0].${problem}`)
})

test("fields with the name of a rule's number or of a member of Object are treated normally", async () => {
  const fields = { limit: ["5"], cost: ["1", "2"], constructor: ["x"], values: ["y"] }
  const rules: StorableRule[] = [{ field: "service", limit: 5, window: "1 minute", match: { fields } }]
  for (const way of [overGrpc, overHttp]) {
    const [back] = await rulesOf((await messagesOf(rules)).map(way), "rules")
    expect(matchFields(back?.match)).toEqual(fields)
  }
})

test("different rules, or the same rules in another order, are not equal", async () => {
  const [one, other]: [Rule, Rule] = [
    { name: "a", field: "ip", limit: 5, window: "1 minute", match: { fields: { x: ["1"], y: ["2"] } } },
    { name: "b", field: "service", limit: 5, window: "1 minute" },
  ]
  expect(await sayTheSame("1", [one, other], [other, one])).toBe(false)
  expect(await sayTheSame("1", [one], [one, other])).toBe(false)
  expect(await sayTheSame("1", [one], [{ ...one, limit: 6 }])).toBe(false)
  const match = { fields: { y: ["2"], x: ["1"] } }
  expect(await sayTheSame("1", [one], [{ ...one, window: 60_000, shadow: false, deny: [], match }])).toBe(
    true,
  )
})

test("a hold in milliseconds becomes a string with its unit", async () => {
  const messages = await messagesOf([{ field: "ip", concurrent: 1_000_000, hold: 2_500 }])
  expect(messages).toMatchObject([{ concurrent: 1_000_000n, hold: "2500 ms" }])
  expect(await rulesOf(messages.map(overHttp), "rules")).toEqual([
    { field: "ip", concurrent: 1_000_000, hold: "2500 ms" },
  ])
})

test.each([4_294_967_295, 4_294_967_296, 150_119_987_579_016])(
  "a limit of %i a minute is exact",
  async (limit) => {
    const messages = await messagesOf([{ field: "service", limit, window: 60_000 }])
    const back = await rulesOf(messages.map(overGrpc), "rules")
    expect(back).toMatchObject([{ limit, window: "1 minute" }])
  },
)
