import type { ParsedRule } from "@sluice/rules"
import { expect, it } from "vitest"
import { requestOf } from "./named-client.ts"

function asked(fields: readonly string[], values: readonly string[]) {
  return requestOf({ name: "own", fields } as unknown as ParsedRule, values).known
}

it.each<[fields: string[], values: string[], known: object]>([
  [[], [], {}],
  [["user"], ["ada"], { user: "ada" }],
  [["ip"], ["192.0.2.1"], { ip: "192.0.2.1" }],
  [["header:x", "query:page"], ["1", "2"], { headers: { x: "1" }, query: { page: "2" } }],
  [["body:user.id", "body:user.name"], ["7", "ada"], { user: { id: "7", name: "ada" } }],
  [["cookie:session"], ["abc"], { cookies: { session: "abc" } }],
])(
  "requestOf, for a rule with the fields %j, creates a request from the values %j",
  (fields, values, known) => {
    expect(JSON.parse(JSON.stringify(asked(fields, values)))).toEqual(known)
  },
)

it.each<[fields: string[], values: string[], says: string]>([
  [[], ["ada"], 'has 1 value; rule "own" counts the whole service, so give 0'],
  [["user"], [], 'has 0 values; rule "own" counts by user, so give 1'],
  [["user", "ip"], ["ada"], 'has 1 value; rule "own" counts by user and ip, so give 2'],
  [["user"], [""], "is empty; give the value of the field"],
  [["ip"], ["ada"], '"ada" is not an IP address'],
  [["param:id"], ["7"], 'cannot be identified: requests to the service have no "param:id"'],
])("requestOf, for a rule with the fields %j, rejects the values %j", (fields, values, says) => {
  expect(() => asked(fields, values)).toThrow(says)
})
