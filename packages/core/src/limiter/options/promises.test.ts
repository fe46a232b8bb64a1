import { expect, it } from "vitest"
import { parseRuleDocument } from "../../rules/documents/rule-document.ts"
import { createLimiter } from "../create-limiter.ts"

const later = Promise.resolve({})

it.each([
  ["fields", { fields: later }],
  ["match", { match: later }],
  ["match.fields", { match: { fields: later } }],
  ["match.path", { match: { path: later } }],
  ["limit", { limit: later }],
  ["store", { store: later }],
  ["throttle", { throttle: later }],
  ["fields.user", { fields: { user: later } }],
])("createLimiter rejects a promise as %s once, with a hint to await it", (path, wrong) => {
  const create = () => createLimiter({ limit: 1, window: 1000, ...(wrong as object) })
  expect(create).toThrow(expect.objectContaining({ code: "SLUICE_INVALID_OPTION" }))
  expect(create).toThrow(`${path}: is a promise; accepted: its value, with await before it`)
  try {
    create()
  } catch (error) {
    expect((error as { problems: unknown[] }).problems).toHaveLength(1)
  }
})

it("createLimiter reports a promise beside a member whose name is a symbol", () => {
  const fields = { [Symbol("user")]: "user" }
  expect(() => createLimiter({ limit: later, window: 1000, fields } as never)).toThrow(
    expect.objectContaining({ code: "SLUICE_INVALID_OPTION" }),
  )
})

it("createLimiter rejects a list of rules with holes", () => {
  const oneHole = [
    { limit: 1, window: 1000 },
    { limit: 2, window: 1000 },
  ]
  delete oneHole[0]
  for (const rules of [Array(3), oneHole]) {
    expect(() => parseRuleDocument({ rules })).toThrow(
      expect.objectContaining({ code: "SLUICE_INVALID_RULE" }),
    )
  }
})
