import { expect, it } from "vitest"
import { textsOf } from "./rule-texts.ts"

it("textsOf creates the text of a rule at its first use, and only once", () => {
  const made: string[] = []
  const texts = textsOf([{ name: "a" }, { name: "b" }], ({ name }) => {
    made.push(name)
    return { text: name.toUpperCase() }
  })
  expect(made).toEqual([])
  expect([texts("b"), texts("b"), texts("c")]).toEqual([{ text: "B" }, { text: "B" }, undefined])
  expect(made).toEqual(["b"])
})
