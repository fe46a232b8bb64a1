import { expect, it } from "vitest"
import { textsOf } from "./rule-texts.ts"

it("textsOf creates the text of a rule at its first use, and only once", () => {
  const made: string[] = []
  const texts = textsOf(
    [
      { name: "a", windowMs: 1 },
      { name: "b", windowMs: 1 },
    ],
    ({ name }) => {
      made.push(name)
      return { text: name.toUpperCase() }
    },
  )
  expect(made).toEqual([])
  expect(["b", "b", "c"].map((policy) => texts({ policy, windowMs: 1 }))).toEqual([
    { text: "B" },
    { text: "B" },
    undefined,
  ])
  expect(made).toEqual(["b"])
})

it("textsOf creates the text of a rule with a window function for each check, with the window of the check", () => {
  const texts = textsOf([{ name: "a", windowMs: undefined }], ({ windowMs }) => ({ windowMs }))
  expect(texts({ policy: "a", windowMs: 1_000 })).toEqual({ windowMs: 1_000 })
  expect(texts({ policy: "a", windowMs: 2_000 })).toEqual({ windowMs: 2_000 })
})
