import { describe, expect, it } from "vitest"
import { RULE_MEMBERS } from "../../rules/parsing/rule-members.ts"
import { hasRuleOption } from "./options-shape.ts"

describe("an option that defines rules", () => {
  const alsoOptions = ["cost", "rejection", "onStoreFailure"]

  it.each([...Object.keys(RULE_MEMBERS).filter((name) => !alsoOptions.includes(name)), "rules", "limiter"])(
    "includes %s, even if undefined",
    (name) => {
      expect(hasRuleOption({ headers: false, [name]: undefined })).toBe(true)
    },
  )

  it.each([...alsoOptions, "store", "fields", "defaultRules", "enabled"])("does not include %s", (name) => {
    expect(hasRuleOption({ [name]: undefined })).toBe(false)
  })
})
