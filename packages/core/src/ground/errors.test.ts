import { describe, expect, it } from "vitest"
import {
  ClosedError,
  InvalidOptionError,
  InvalidRuleError,
  RuleSourceError,
  SluiceError,
  StoreUnavailableError,
  textOf,
} from "./errors.ts"

describe("every error", () => {
  it.each([
    [new InvalidOptionError([]), "InvalidOptionError", "SLUICE_INVALID_OPTION"],
    [new InvalidRuleError([]), "InvalidRuleError", "SLUICE_INVALID_RULE"],
    [new RuleSourceError("gone"), "RuleSourceError", "SLUICE_RULE_SOURCE"],
    [new StoreUnavailableError("gone"), "StoreUnavailableError", "SLUICE_STORE_UNAVAILABLE"],
    [new ClosedError("closed"), "ClosedError", "SLUICE_CLOSED"],
  ])("has the name and the stable code of its class: %s", (error, name, code) => {
    expect(error).toBeInstanceOf(SluiceError)
    expect(error).toBeInstanceOf(Error)
    expect(error.name).toBe(name)
    expect(error.code).toBe(code)
  })

  it.each([
    new InvalidOptionError([], { cause: "the cause" }),
    new InvalidRuleError([], { cause: "the cause" }),
    new RuleSourceError("gone", { cause: "the cause" }),
    new StoreUnavailableError("gone", { cause: "the cause" }),
    new ClosedError("closed", { cause: "the cause" }),
  ])("keeps its cause: %s", (error) => {
    expect(error.cause).toBe("the cause")
  })

  it("has no cause property if no cause was given", () => {
    expect(Object.hasOwn(new ClosedError("closed"), "cause")).toBe(false)
  })
})

describe("an error's message", () => {
  it("for one problem is one line with the path, the problem and the accepted values", () => {
    const problem = { path: "limit", message: "-1 is not positive", accepted: "a positive whole number" }
    const error = new InvalidOptionError([problem])
    expect(error.message).toBe("Wrong options: limit: -1 is not positive; accepted: a positive whole number")
    expect(error.problems).toEqual([problem])
  })

  it("for several problems is a list", () => {
    const problems = [
      { path: "rules[0].window", message: '"5 minuts" is not a duration', accepted: "5 minutes" },
      { path: "", message: "there are two rules of one name" },
    ]
    const error = new InvalidRuleError(problems)
    expect(error.message).toBe(
      'Wrong rules:\n  - rules[0].window: "5 minuts" is not a duration; accepted: 5 minutes\n  - there are two rules of one name',
    )
    expect(error.problems).toEqual(problems)
  })
})

it("an error lists the first 50 problems in its message, and keeps all of them", () => {
  const problems = Array.from({ length: 51 }, (_, i) => ({ path: `rules[${i}]`, message: "is wrong" }))
  const { message, problems: kept } = new InvalidRuleError(problems)
  expect(message.split("\n").slice(-2)).toEqual(["  - rules[49]: is wrong", "  - and 1 more"])
  expect(kept).toEqual(problems)
  expect(new InvalidRuleError(problems.slice(1)).message).not.toContain("more")
})

describe("the text of a thrown value", () => {
  it.each([
    ["a string", "a string"],
    [5, "5"],
    [undefined, "undefined"],
    [null, "null"],
    [Symbol("s"), "Symbol(s)"],
    [new TypeError("no time"), "TypeError: no time"],
    [Object.create(null), "an unprintable object"],
    [{ toString: () => ({}), valueOf: () => ({}) }, "an unprintable object"],
    [
      Object.assign(() => {}, {
        toString: () => {
          throw new Error("no string")
        },
      }),
      "an unprintable function",
    ],
  ])("is readable for every kind of value (case %#)", (value, text) => {
    expect(textOf(value)).toBe(text)
  })
})
