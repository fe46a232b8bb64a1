import { expect, it } from "vitest"
import { leakyBucket, tokenBucket } from "./bucket.ts"
import { bucketedWindow } from "./bucketed-window.ts"
import { calendarWindow } from "./calendar-window.ts"
import { fixedWindow } from "./fixed-window.ts"
import { inFlight } from "./in-flight.ts"
import { ALGORITHM_NAMES, algorithmOf, countsByPart, holdsAdmitted, readsMember, releases } from "./kinds.ts"
import { penalty } from "./penalty.ts"
import { periodicRefill } from "./periodic-refill.ts"
import { slidingLog } from "./sliding-log.ts"
import { slidingWindow } from "./sliding-window.ts"
import { strictWindow } from "./strict-window.ts"
import { policyOf } from "./testing/counter-story.ts"

it.each([
  [{ algorithm: "sliding-window" }, slidingWindow],
  [{ algorithm: "sliding-window", buckets: 6 }, bucketedWindow],
  [{ algorithm: "sliding-window-strict", buckets: 6 }, strictWindow],
  [{ algorithm: "sliding-log" }, slidingLog],
  [{ algorithm: "fixed-window" }, fixedWindow],
  [{ algorithm: "fixed-window", align: "first-hit" }, fixedWindow],
  [{ algorithm: "fixed-window", periods: [0, 1_000] }, calendarWindow],
  [{ algorithm: "token-bucket" }, tokenBucket],
  [{ algorithm: "token-bucket", refill: "continuous" }, tokenBucket],
  [{ algorithm: "token-bucket", refill: "periodic" }, periodicRefill],
  [{ algorithm: "leaky-bucket" }, leakyBucket],
  [{ algorithm: "in-flight" }, inFlight],
  [{ algorithm: "penalty" }, penalty],
] as const)("algorithmOf returns the matching algorithm for a policy with %o", (members, expected) => {
  expect(algorithmOf(policyOf({ limit: 3, windowMs: 1_000, ...members }))).toBe(expected)
})

it.each([
  { algorithm: "sliding-window", endsByRule: false },
  { algorithm: "sliding-window-strict", endsByRule: false },
  { algorithm: "sliding-log", endsByRule: false },
  { algorithm: "fixed-window", endsByRule: false },
  { algorithm: "token-bucket", endsByRule: true },
  { algorithm: "token-bucket", refill: "periodic", endsByRule: true },
  { algorithm: "leaky-bucket", endsByRule: true },
  { algorithm: "in-flight", endsByRule: false },
  { algorithm: "penalty", endsByRule: true },
] as const)(
  "endsByRule is true only if a changed rule changes the expiry of a counter: $algorithm",
  (each) => {
    const { endsByRule, ...members } = each
    const penalty = { refusals: 10, withinMs: 1_000, forMs: [1_000] }
    const policy = policyOf({ limit: 10, windowMs: 1_000, buckets: 4, ...members, penalty })
    const other = { ...policy, limit: 2, penalty: { ...penalty, withinMs: 5_000 } }
    const algorithm = algorithmOf(policy)
    const empty = algorithm.at(undefined, policy, 8_000)
    const state = algorithm.withRejected(algorithm.withUnits(empty, policy, 9, 8_000), policy, 9, 8_000)
    expect(algorithm.emptyAtMs(state, policy) !== algorithm.emptyAtMs(state, other)).toBe(endsByRule)
    expect(algorithm.endsByRule ?? false).toBe(endsByRule)
  },
)

it("holdsAdmitted is true for the leaky bucket only", () => {
  expect(ALGORITHM_NAMES.filter(holdsAdmitted)).toEqual(["leaky-bucket"])
})

it("countsByPart is true for algorithms whose units can be taken ahead of time", () => {
  const algorithms = [...ALGORITHM_NAMES, "in-flight", "penalty", "of a later version" as "penalty"] as const
  const byPart = algorithms.filter((algorithm) =>
    countsByPart(policyOf({ algorithm, limit: 3, windowMs: 1_000 })),
  )
  expect(byPart).toEqual(["sliding-window", "sliding-window-strict", "fixed-window", "token-bucket"])
})

it("readsMember is false for an algorithm that does not exist", () => {
  expect(["token-bucket", "sliding-window", "none"].map((name) => readsMember(name, "burst"))).toEqual([
    true,
    false,
    false,
  ])
})

it("the property releases is true only for permits, which a rule cannot choose as its algorithm", () => {
  const algorithms = [...ALGORITHM_NAMES, "in-flight", "penalty", "none"]
  expect(algorithms.filter((algorithm) => releases({ algorithm }))).toEqual(["in-flight"])
  expect(ALGORITHM_NAMES).not.toContain("in-flight")
})
