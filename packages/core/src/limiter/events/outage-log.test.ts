import { expect, it } from "vitest"
import { timeoutWarning } from "./outage-log.ts"

const LATE = { decisions: 300, late: 300 }
const FOUND =
  "300 of 300 decisions within a minute were made without the store, because it did not respond within storeTimeoutMs (50 ms)."

it.each([
  [
    "is far away",
    { medianMs: 80.2, most95Ms: 84.9 },
    "Its replies take 81 ms (95 % of them at most 85 ms). Set storeTimeoutMs to 170 or more, or move the store closer.",
  ],
  [
    "is near and stalls",
    { medianMs: 0.4, most95Ms: 2.1 },
    "Its replies take 1 ms (95 % of them at most 3 ms), so it is close enough. Connect to it before the app listens, " +
      "and look for slow commands (SLOWLOG GET) and for work that blocks this process. Set storeTimeoutMs to 100 if such delays are normal.",
  ],
  [
    "was not measured",
    undefined,
    "No reply was measured. Set storeTimeoutMs to 100 if the store is far away.",
  ],
])("the warning suggests a timeout and names the latency of a store that %s", (_, roundTrip, advice) => {
  expect(timeoutWarning({ ...LATE, roundTrip }, 50)).toBe(`${FOUND} ${advice}`)
})
