import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { createWarner } from "../../ground/warnings.ts"
import { compileTest } from "./compile-test.ts"

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

it("a promise from a function of the app causes no unhandled rejection", async () => {
  const unhandled: unknown[] = []
  const listen = (reason: unknown): number => unhandled.push(reason)
  process.on("unhandledRejection", listen)
  const late = () => Promise.reject(new Error("late"))
  const { said, warner: to } = warner()
  expect(compileTest("refundWhen", late, "", to)()).toBe(false)
  await nextTurn()
  process.off("unhandledRejection", listen)
  expect([said.length, unhandled]).toEqual([1, []])
})

describe("a compiled boolean function", () => {
  it.each(WRONG.concat([["returned 1", () => 1]]))(
    "returns false if the app's function %s, which is reported once",
    (what, test) => {
      const { said, warner: to } = warner()
      const says = compileTest("refundWhen", test, "the units stay taken", to)
      expect([says(), says()]).toEqual([false, false])
      expect(said).toEqual([
        `SLUICE_CALLBACK_FAILED: refundWhen ${what}. It must return true or false, not a promise; otherwise the units stay taken.`,
      ])
    },
  )

  it("returns the result of the app's function, and false if there is no such function", () => {
    const { said, warner: to } = warner()
    const says = compileTest(
      "refundWhen",
      (_: unknown, status: number) => status < 400,
      "the units stay taken",
      to,
    )
    expect([says({}, 200), says({}, 401)]).toEqual([true, false])
    expect(compileTest("refundWhen", undefined, "", to)()).toBe(false)
    expect(said).toEqual([])
  })
})
