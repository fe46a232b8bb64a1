import { describe, expect, it } from "vitest"
import { member } from "../../rules/parsing/rule-members.ts"
import { hasRuleOption } from "./options-shape.ts"

describe("whether options say which rules there are", () => {
  const alsoOptions = ["cost", "onStoreFailure"]

  it.each([
    ...Object.keys(member).filter((name) => !alsoOptions.includes(name)),
    "throttle",
    "rules",
    "limiter",
  ])("%s does, even undefined", (name) => {
    expect(hasRuleOption({ headers: false, [name]: undefined })).toBe(true)
  })

  it.each([...alsoOptions, "store", "fields", "defaultRules", "enabled"])("%s does not", (name) => {
    expect(hasRuleOption({ [name]: undefined })).toBe(false)
  })
})
