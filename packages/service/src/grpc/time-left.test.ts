import { expect, it } from "vitest"
import { timeLeftMs } from "./time-left.ts"

it.each([
  ["2H", 7_200_000],
  ["2M", 120_000],
  ["2S", 2_000],
  ["2m", 2],
  ["2000u", 2],
  ["2000000n", 2],
  ["99999999m", 99_999_999],
  ["0S", 0],
])("timeLeftMs converts the timeout %s to %d ms", (timeout, ms) => {
  expect(timeLeftMs(timeout)).toBeCloseTo(ms, 9)
})

it.each(["", "2", "S", "2s", "2 S", "-2S", "2.5S", "123456789m", "2Sx", "x2S", "2SS"])(
  "timeLeftMs returns undefined for the invalid timeout %j",
  (timeout) => {
    expect(timeLeftMs(timeout)).toBeUndefined()
  },
)
