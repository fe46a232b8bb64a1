import { StoreUnavailableError } from "@sluice/core"
import type { Policy } from "@sluice/core/stores"
import { describe, expect, it } from "vitest"
import { integerAt, nonsense, readReply, stateAt } from "./script-reply.ts"

const WINDOW_MS = 60_000
const POLICY: Policy = {
  name: "login",
  counter: "counter0",
  algorithm: "fixed-window",
  limit: 10,
  windowMs: WINDOW_MS,
  align: "epoch",
}
/** The start of window 28,401,120 of 60 s. The window's code is the window's number modulo 2047, plus 1. */
const START_MS = 28_401_120 * WINDOW_MS
const NOW_MS = START_MS + 12_345
const CODE = (28_401_120 % 2047) + 1

function packed(code: number, previous: number, current: number): number {
  return code * 2 ** 42 + previous * 2 ** 21 + current
}

describe("readReply", () => {
  it("returns a list", () => {
    expect(readReply([1, "w:1:2:3"])).toEqual([1, "w:1:2:3"])
  })

  it.each([undefined, null, "OK", 5, [], {}])("rejects %j", (reply) => {
    expect(() => readReply(reply)).toThrow(StoreUnavailableError)
  })
})

describe("integerAt", () => {
  it.each([
    [0, 0],
    [7, 7],
    ["7", 7],
    ["9007199254740991", Number.MAX_SAFE_INTEGER],
  ])("reads %j", (value, expected) => {
    expect(integerAt([1, value], 1)).toBe(expected)
  })

  it.each([
    [-1],
    [1.5],
    [2 ** 53],
    ["x"],
    ["9007199254740993"],
    [null],
    [undefined],
    [true],
    [Number.NaN],
    [[1]],
  ])("rejects %j, and shows the reply", (value) => {
    expect(() => integerAt([1, value], 1)).toThrow(/^Redis sent an invalid reply: \[1,/)
  })
})

describe("stateAt", () => {
  it.each<{ readonly what: string; readonly value: unknown; readonly expected: unknown; policy?: Policy }>([
    { what: "an invalid counter as undefined", value: 0, expected: undefined },
    { what: "an invalid counter in a string as undefined", value: "0", expected: undefined },
    {
      what: "a packed state of this window",
      value: packed(CODE, 3, 4),
      expected: { startMs: START_MS, previous: 3, current: 4 },
    },
    {
      what: "a state of this window without a code",
      value: 3 * 2 ** 21 + 4,
      expected: { startMs: START_MS, previous: 3, current: 4 },
    },
    {
      what: "the smallest state without a code, as a string",
      value: "1",
      expected: { startMs: START_MS, previous: 0, current: 1 },
    },
    {
      what: "the largest state without a code",
      value: 2 ** 42 - 1,
      expected: { startMs: START_MS, previous: 2 ** 21 - 1, current: 2 ** 21 - 1 },
    },
    {
      what: "the largest packed counts, as a string",
      value: String(packed(CODE, 2 ** 21 - 1, 2 ** 20 - 1)),
      expected: { startMs: START_MS, previous: 2 ** 21 - 1, current: 2 ** 20 - 1 },
    },
    {
      what: "a packed state of the next window, after the clock went back",
      value: packed(CODE + 1, 0, 4),
      expected: { startMs: START_MS + WINDOW_MS, previous: 0, current: 4 },
    },
    {
      what: "a wide state",
      value: "w:1700000000001:5000000:9007199254740991",
      expected: { startMs: 1_700_000_000_001, previous: 5_000_000, current: Number.MAX_SAFE_INTEGER },
    },
    {
      what: "a wide state with parts",
      policy: { ...POLICY, algorithm: "sliding-window" as const, buckets: 6 },
      value: "w:1700000000001:5:3:101o",
      expected: { startMs: 1_700_000_000_001, previous: 5, current: 3, parts: "101o" },
    },
    {
      what: "a wide state whose parts are empty",
      policy: { ...POLICY, algorithm: "sliding-log" as const },
      value: "w:1700000000001:0:0",
      expected: { startMs: 1_700_000_000_001, previous: 0, current: 0, parts: "" },
    },
  ])("reads $what", ({ value, expected, policy = POLICY }) => {
    expect(stateAt([NOW_MS, value], 1, policy, NOW_MS)).toStrictEqual(expected)
  })

  it("reads a packed state with every window code from 1 to 2047", () => {
    for (let window = 28_401_000; window < 28_401_000 + 2 * 2047; window++) {
      const startMs = window * WINDOW_MS
      const value = packed((window % 2047) + 1, 1, 2)
      expect(stateAt([startMs, value], 1, POLICY, startMs)).toEqual({ startMs, previous: 1, current: 2 })
    }
  })

  describe("for a grant of a strict window", () => {
    const strict: Policy = { ...POLICY, algorithm: "sliding-window-strict", buckets: 60 }
    const second = START_MS + 12_000
    const number = (startMs: number, count: number, sum: number, current: number) =>
      (((startMs / 1_000) % 511) + 1) * 2 ** 44 + count * 2 ** 35 + sum * 2 ** 18 + current

    it.each([
      { what: "no earlier sub-window", count: 0, sum: 0, parts: "" },
      { what: "one earlier sub-window", count: 1, sum: 2 ** 17 - 1, parts: "11" },
      { what: "60 earlier sub-windows", count: 60, sum: 70, parts: `1${"0".repeat(59)}1` },
    ])("reads the sum and the sub-window of the oldest unit: $what", ({ count, sum, parts }) => {
      const value = number(second, count, sum, 2 ** 17 - 1)
      const expected = { startMs: second, previous: sum, current: 2 ** 17 - 1, parts }
      expect(stateAt([NOW_MS, value], 1, strict, NOW_MS)).toEqual(expected)
      expect(stateAt([NOW_MS, String(value)], 1, strict, NOW_MS)).toEqual(expected)
    })

    it("returns undefined for a number with too many sub-windows", () => {
      expect(stateAt([NOW_MS, number(second, 61, 61, 1)], 1, strict, NOW_MS)).toBeUndefined()
    })

    it("rejects a number that belongs to another sub-window", () => {
      for (const other of [second - 1_000, second + 1_000]) {
        expect(() => stateAt([NOW_MS, number(other, 0, 0, 1)], 1, strict, NOW_MS)).toThrow(
          StoreUnavailableError,
        )
      }
    })
  })

  it.each([["w:1:2"], ["w:1:2:x"], ["w:1:2:3:p"], ["w:1:2:3:1/"], ["rubbish"], [null], [-3]])(
    "rejects %j",
    (value) => {
      expect(() => stateAt([NOW_MS, value], 1, POLICY, NOW_MS)).toThrow(StoreUnavailableError)
    },
  )
})

it.each([`w:9007199254740993:0:1`, `w:1:${"9".repeat(400)}:1`])(
  "stateAt returns undefined for %s",
  (value) => {
    expect(stateAt([NOW_MS, value], 1, POLICY, NOW_MS)).toBeUndefined()
  },
)

describe("nonsense", () => {
  it.each<[unknown, string]>([
    ["OK", "OK"],
    [undefined, "undefined"],
    [[1, null], "[1,null]"],
    ["x".repeat(100), "x".repeat(100)],
    ["x".repeat(101), `${"x".repeat(100)}…`],
  ])("returns an error that shows %j, shortened if it is long", (reply, shown) => {
    expect(nonsense(reply)).toMatchObject({
      code: "SLUICE_STORE_UNAVAILABLE",
      kind: "invalid-answer",
      message: `Redis sent an invalid reply: ${shown}.`,
    })
  })
})

describe("the code of a packed state", () => {
  /** A window with the last code, so that the next window has the first code. */
  const lastMs = (28_401_120 - (28_401_120 % 2047) + 2046) * WINDOW_MS

  it("wraps around from 2047 to 1", () => {
    const state = { previous: 0, current: 4 }
    expect(stateAt([lastMs, packed(2047, 0, 4)], 1, POLICY, lastMs)).toEqual({ startMs: lastMs, ...state })
    const next = { startMs: lastMs + WINDOW_MS, ...state }
    expect(stateAt([lastMs, packed(1, 0, 4)], 1, POLICY, lastMs)).toEqual(next)
  })

  it.each([2 ** 42, packed(CODE - 1, 0, 4), packed(CODE + 2, 0, 4)])(
    "is rejected unless it belongs to the current or the next window: %d",
    (value) => {
      expect(() => stateAt([NOW_MS, value], 1, POLICY, NOW_MS)).toThrow(StoreUnavailableError)
    },
  )
})
