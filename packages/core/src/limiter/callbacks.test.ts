import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { isUnits } from "../ground/policy.ts"
import { createWarner } from "../ground/warnings.ts"
import { compileTest, compileUnits } from "./callbacks.ts"

function warner() {
  const said: string[] = []
  const logger = { warn() {}, error() {} }
  return { said, warner: createWarner(logger, ({ code, message }) => said.push(`${code}: ${message}`)) }
}

function throwing(error: unknown): () => never {
  return () => {
    throw error
  }
}

const WRONG: [string, () => unknown][] = [
  ["returned undefined", () => undefined],
  ["returned null", () => null],
  ["returned NaN", () => Number.NaN],
  ["returned an unprintable object", () => Object.create(null)],
  ["returned [object Promise]", async () => true],
  ["returned [object Promise]", () => Promise.reject(new Error("late"))],
  ["failed: Error: broken", throwing(new Error("broken"))],
  ["failed: undefined", throwing(undefined)],
  ["failed: an unprintable object", throwing(Object.create(null))],
]

describe("the cost of a request", () => {
  it.each(
    WRONG.concat([
      ["returned -1", () => -1],
      ["returned 1.5", () => 1.5],
      ['returned "3"', () => "3"],
      ["returned Infinity", () => Number.POSITIVE_INFINITY],
    ]),
  )("is 1 if the cost function %s, which is reported once", (what, cost) => {
    const { said, warner: to } = warner()
    const unitsOf = compileUnits(cost, to)
    expect([unitsOf({}), unitsOf({})]).toEqual([1, 1])
    expect(said).toEqual([
      `SLUICE_INVALID_COST: The cost function ${what}. It must return a whole number from 0 up. Such a request counts as 1 unit.`,
    ])
  })

  it("is the return value of the function for the request", () => {
    const { said, warner: to } = warner()
    const unitsOf = compileUnits(({ size }: { size: number }) => size, to)
    expect([0, 3, Number.MAX_SAFE_INTEGER].map((size) => unitsOf({ size }))).toEqual([0, 3, 2 ** 53 - 1])
    expect(said).toEqual([])
  })

  it("is a number of units from 0 to below 2^53", () => {
    expect([0, 1, 2 ** 53 - 1].map(isUnits)).toEqual([true, true, true])
    expect([-1, 0.5, 2 ** 53, Number.NaN, "1", undefined, 1n].some(isUnits)).toBe(false)
  })
})

it("a promise from a function of the app causes no unhandled rejection", async () => {
  const unhandled: unknown[] = []
  const listen = (reason: unknown): number => unhandled.push(reason)
  process.on("unhandledRejection", listen)
  const late = () => Promise.reject(new Error("late"))
  const { said, warner: to } = warner()
  expect([compileUnits(late, to)({}), compileTest("skip", late, "", to)()]).toEqual([1, false])
  await nextTurn()
  process.off("unhandledRejection", listen)
  expect([said.length, unhandled]).toEqual([2, []])
})

describe("a boolean function of the app", () => {
  it.each(WRONG.concat([["returned 1", () => 1]]))(
    "returns false if the app's function %s, which is reported once",
    (what, test) => {
      const { said, warner: to } = warner()
      const says = compileTest("skip", test, "the request is counted", to)
      expect([says(), says()]).toEqual([false, false])
      expect(said).toEqual([
        `SLUICE_CALLBACK_FAILED: skip ${what}. It must return true or false, not a promise; otherwise the request is counted.`,
      ])
    },
  )

  it("returns its result for the given arguments, and false if there is no function", () => {
    const { said, warner: to } = warner()
    const says = compileTest(
      "refundWhen",
      (_: unknown, status: number) => status < 400,
      "the units stay taken",
      to,
    )
    expect([says({}, 200), says({}, 401)]).toEqual([true, false])
    expect(compileTest("skip", undefined, "", to)()).toBe(false)
    expect(said).toEqual([])
  })
})
