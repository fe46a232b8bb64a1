import { expect, it } from "vitest"
import { logRefusedConnections } from "./refusals-log.ts"

it("writes one line a minute, however many connections are refused", () => {
  let nowMs = 0
  let lines = 0
  const refused = logRefusedConnections({ warn: () => void lines++ }, () => nowMs)
  const told = [0, 1, 59_999, 60_000, 60_001, 119_999, 120_000].map((at) => {
    nowMs = at
    refused()
    return lines
  })
  expect(told).toEqual([1, 1, 1, 2, 2, 2, 3])
})
