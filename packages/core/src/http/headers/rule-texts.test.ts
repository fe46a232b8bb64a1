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

it("textsOf creates the text of a rule without a fixed window whenever the window of its check changes", () => {
  const made: number[] = []
  const texts = textsOf([{ name: "a", windowMs: undefined }], ({ windowMs }) => {
    made.push(windowMs)
    return { windowMs }
  })
  for (const windowMs of [1_000, 1_000, 2_000, 2_000, 1_000])
    expect(texts({ policy: "a", windowMs })).toEqual({ windowMs })
  expect(made).toEqual([1_000, 2_000, 1_000])
})
