import { expect, test } from "vitest"
import { canonicalField, FIELD_ACCEPTED, fieldMistake } from "./field-name.ts"

test.each([
  "ip",
  "service",
  "method",
  "route",
  "user_id",
  "plan",
  "a.b-c_9",
  "x".repeat(64),
  "header:x-api-key",
  "header:X-API-Key",
  "cookie:session",
  "query:page",
  "query:filter[name]",
  "query:имя",
  "query:a:b",
  "param:id",
  "body:user",
  "body:user.e-mail.0",
  "body:a.b.c.d.e.f.g.h",
  "constructor",
])("%j is a valid field", (text) => {
  expect(fieldMistake(text)).toBeUndefined()
})

test.each([
  ["", "a field", FIELD_ACCEPTED],
  ["user id", "a field", FIELD_ACCEPTED],
  ["имя", "a field", FIELD_ACCEPTED],
  ["x".repeat(65), "a field", FIELD_ACCEPTED],
  ["__proto__", "a field", FIELD_ACCEPTED],
  ["IP", 'a field; did you mean "ip"?', FIELD_ACCEPTED],
  ["Route", 'a field; did you mean "route"?', FIELD_ACCEPTED],
  ["hedaer:x", 'a field; did you mean "header:"?', FIELD_ACCEPTED],
  ["Header:x", 'a field; did you mean "header:"?', FIELD_ACCEPTED],
  ["session:id", "a field", FIELD_ACCEPTED],
  ["ip:1", "a field", FIELD_ACCEPTED],
  [":x", "a field", FIELD_ACCEPTED],
  ["header", "a field", "header:NAME with the name of a header, such as header:x-api-key"],
  ["header:", "a field", "header:NAME with the name of a header, such as header:x-api-key"],
  ["header:x api", "a field", "header:NAME with the name of a header, such as header:x-api-key"],
  ["cookie:a=b", "a field", "cookie:NAME with the name of a cookie, such as cookie:session"],
  ["query:", "a field", "query:NAME with the name of a query parameter, such as query:key"],
  ["query:a\nb", "a field", "query:NAME with the name of a query parameter, such as query:key"],
  ["param:", "a field", "param:NAME with the name of a route parameter, such as param:id"],
  ["body:", "a field", "body:PATH with 1 to 8 names separated by dots, such as body:user.id"],
  ["body:a..b", "a field", "body:PATH with 1 to 8 names separated by dots, such as body:user.id"],
  [
    "body:a.b.c.d.e.f.g.h.i",
    "a field",
    "body:PATH with 1 to 8 names separated by dots, such as body:user.id",
  ],
])("%j is not %s", (text, noun, accepted) => {
  expect(fieldMistake(text)).toEqual({ noun, accepted })
})

test("canonicalField converts header names, but no other names, to lower case", () => {
  expect(canonicalField("header:X-API-Key")).toBe("header:x-api-key")
  expect(canonicalField("query:Page")).toBe("query:Page")
  expect(canonicalField("userId")).toBe("userId")
})
