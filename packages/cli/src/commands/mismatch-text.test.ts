import type { Mismatch } from "@sluice/core/adapters"
import type { StorableRule } from "@sluice/rules"
import { expect, it } from "vitest"
import { mismatchText } from "./mismatch-text.ts"

const RULE: StorableRule = {
  field: "ip",
  limit: 1,
  window: "1 minute",
  match: { methods: ["GET", "PUT"], path: "/a", fields: { "header:X-Plan": ["free"] } },
}
const BARE: StorableRule = { field: "ip", limit: 1, window: "1 minute" }

it.each<[Mismatch, string, string]>([
  [{ member: "match.methods" }, "the method is not", "the method is not"],
  [{ member: "match.path" }, "the path does not match", "the path does not match"],
  [{ member: "match.fields", field: "header:x-plan", value: "pro" }, "header:x-plan is", "header:x-plan is"],
  [
    { member: "match.fields", field: "header:x-plan" },
    "header:x-plan is missing",
    "header:x-plan is missing",
  ],
  [{ member: "allow", field: "ip", value: "192.0.2.1" }, "which is on the allow list", "on the allow list"],
  [
    { member: "onMissing", field: "user" },
    "user is missing, and the rule skips",
    "the rule skips such requests",
  ],
  [{ member: "limit" }, "the request is not limited", "the request is not limited"],
  [{ member: "match.when" }, "the request is not limited", "the request is not limited"],
  [{ member: "preflight" }, "a CORS preflight", "a CORS preflight"],
  [{ member: "cannotRelease" }, "nobody would say when", "the request has ended"],
  [{ member: "onlyFields", field: "user" }, "the request does not have user", "does not have user"],
])("mismatchText describes %j, with and without a match in the rule", (mismatch, withMatch, without) => {
  expect(mismatchText(mismatch, RULE)).toContain(withMatch)
  expect(mismatchText(mismatch, BARE)).toContain(without)
})
