import { expect, test } from "vitest"
import { closest, locate, show, suggestion } from "./show.ts"

const circular: Record<string, unknown> = {}
circular.self = circular

test.each([
  [undefined, "undefined"],
  [null, "null"],
  [5, "5"],
  [Number.NaN, "NaN"],
  [Number.NEGATIVE_INFINITY, "-Infinity"],
  [7n, "7n"],
  [true, "true"],
  [Symbol("binary of 3 bytes"), "binary of 3 bytes"],
  [Symbol(), "a symbol"],
  [() => 5, "a function"],
  ["5 minuts", '"5 minuts"'],
  [{ limit: 5 }, '{"limit":5}'],
  [[1, "a"], '[1,"a"]'],
  [circular, "an object"],
  [[circular], "a list"],
  [{ toJSON: () => undefined }, "an object"],
  [new Map([["password", "secret"]]), "an instance of Map"],
  [
    new (class Client {
      options = { password: "secret" }
    })(),
    "an instance of Client",
  ],
  [new (class {})(), "{}"],
  [Object.create(null, { limit: { value: 5, enumerable: true } }), '{"limit":5}'],
  [{ constructor: "limit" }, '{"constructor":"limit"}'],
  [
    {
      get constructor() {
        throw new Error("no")
      },
    },
    "an object",
  ],
  ["redis://:secret@host:6379/0", '"redis://…@host:6379/0"'],
  [`rediss://user:${"s".repeat(100)}@host`, '"rediss://…@host"'],
  ["//a//b@c", '"//a//…@c"'],
  ["x".repeat(5_000_000), `"${"x".repeat(58)}…`],
  ["a\nb", '"a\\nb"'],
  ["a\u2028b\u202ec\u0085", '"a\\u{2028}b\\u{202e}c\\u{85}"'],
  [`${"x".repeat(57)}😀`, `"${"x".repeat(57)}\\u{d83d}…`],
])("show returns one short line for every kind of value (case %#)", (value, text) => {
  expect(show(value)).toBe(text)
})

test.each([
  ["", [], ""],
  ["", ["window"], "window"],
  ["rules[1]", ["match", "path"], "rules[1].match.path"],
  ["rules", [0, "allow", 3], "rules[0].allow[3]"],
  ["rules[0]", ["match", "fields", "header:x"], 'rules[0].match.fields["header:x"]'],
  ["rules[0]", ["a\nb"], 'rules[0]["a\\nb"]'],
  ["", ["x".repeat(65)], `["${"x".repeat(58)}…]`],
])("locate joins %j and %j into one path", (place, path, whole) => {
  expect(locate(place, { path, message: "is wrong" })).toEqual({ path: whole, message: "is wrong" })
})

const names = ["name", "limit", "window", "on_missing", "request_rejection_message"]
test.each([
  ["limti", "limit"],
  ["Limits", "limit"],
  ["windows", "window"],
  ["onMissing", "on_missing"],
  ["rejection_message", "request_rejection_message"],
  ["limit_per_user", "limit"],
  ["burst", undefined],
  ["im", undefined],
  ["", undefined],
  [`limit${"s".repeat(59)}`, "limit"],
  [`limit${"s".repeat(60)}`, undefined],
])("the suggestion for %j is %j", (given, meant) => {
  expect(closest(given, names)).toBe(meant)
  expect(suggestion(given, names)).toBe(meant === undefined ? "" : `; did you mean "${meant}"?`)
})

test("closest returns undefined if there are no names", () => {
  expect(closest("limit", [])).toBeUndefined()
})
