import { describe, expect, it } from "vitest"
import { InvalidOptionError, type Problem } from "./errors.ts"
import { type OptionCheck, problemAt, requireOptions, wholeNumber } from "./option-checks.ts"

const text: OptionCheck = (value) =>
  typeof value === "string" ? undefined : { message: "is not a string", accepted: "a string" }
const CHECKS = { prefix: text, instances: wholeNumber("number of instances", "processes") }
const NAMES = "prefix, instances"

function problemsOf(options: unknown, others: readonly Problem[] = []): readonly Problem[] {
  try {
    requireOptions("createIt", options, CHECKS, others, { keyPrefix: "prefix" })
  } catch (error) {
    return (error as InvalidOptionError).problems
  }
  return []
}

describe("requireOptions", () => {
  it.each([{}, { prefix: "", instances: 3 }, { prefix: undefined, unknown: undefined }])(
    "accepts %j",
    (options) => {
      expect(problemsOf(options)).toEqual([])
    },
  )

  it("throws one error with all problems, beginning with the problems that were passed to it", () => {
    const other = { path: "store", message: "is missing", accepted: "a store" }
    expect(() => requireOptions("createIt", { prefix: 5 }, CHECKS, [other])).toThrow(InvalidOptionError)
    expect(problemsOf({ instances: 0, prefix: 5 }, [other])).toEqual([
      other,
      {
        path: "instances",
        message: "0 is not a valid number of instances",
        accepted: "a positive whole number of processes",
      },
      { path: "prefix", message: "is not a string", accepted: "a string" },
    ])
  })

  it.each([
    ["prefxi", '; did you mean "prefix"?'],
    ["toString", ""],
    ["__proto__", ""],
  ])("rejects the unknown option %s", (path, suggestion) => {
    const message = `is not an option of createIt${suggestion}`
    expect(problemsOf(JSON.parse(`{ "${path}": 1 }`))).toEqual([{ path, message, accepted: NAMES }])
  })

  it("suggests Sluice's name for an option that other libraries name differently", () => {
    const message = 'is not an option of createIt; use "prefix" instead'
    expect(problemsOf({ keyPrefix: "a" })).toEqual([{ path: "keyPrefix", message }])
  })

  it("also checks inherited members and the getters of a class", () => {
    class Options {
      get prefix() {
        return 5
      }
    }
    const problem = { path: "prefix", message: "is not a string", accepted: "a string" }
    for (const options of [Object.create({ prefix: 5 }), new Options()]) {
      expect(problemsOf(options)).toEqual([problem])
    }
    expect(problemsOf(Object.create({ keyPrefix: "a" }))).toHaveLength(1)
  })

  it.each([null, undefined, 5, "text", []])("rejects %j, which is not an options object", (options) => {
    const message = `${JSON.stringify(options)} is not an options object`
    expect(problemsOf(options)).toEqual([{ path: "", message, accepted: `an object with ${NAMES}` }])
  })
})

describe("problemAt", () => {
  it("returns the problem with its place, or an empty array if there is no problem", () => {
    const problem = { path: "far.eu", message: "is not a string", accepted: "a string" }
    expect([problemAt("far.eu", 5, text), problemAt("far.eu", "", text)]).toEqual([[problem], []])
  })
})

describe("wholeNumber", () => {
  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, "1", null])("rejects %j", (value) => {
    expect(wholeNumber("limit", "units")(value)).toMatchObject({
      accepted: "a positive whole number of units",
    })
  })

  it.each([1, Number.MAX_SAFE_INTEGER])("accepts %j", (value) => {
    expect(wholeNumber("limit", "units")(value)).toBeUndefined()
  })
})
