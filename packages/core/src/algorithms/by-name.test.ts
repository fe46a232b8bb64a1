import { expect, it } from "vitest"
import { bucketedWindow } from "./bucketed-window.ts"
import { leakyBucket, tokenBucket } from "./buckets.ts"
import { algorithmOf } from "./by-name.ts"
import { fixedWindow } from "./fixed-window.ts"
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
  [{ algorithm: "token-bucket" }, tokenBucket],
  [{ algorithm: "token-bucket", refill: "continuous" }, tokenBucket],
  [{ algorithm: "token-bucket", refill: "periodic" }, periodicRefill],
  [{ algorithm: "leaky-bucket" }, leakyBucket],
  [{ algorithm: "penalty" }, penalty],
] as const)("a policy with %o is counted by its algorithm", (members, expected) => {
  expect(algorithmOf(policyOf({ limit: 3, windowMs: 1_000, ...members }))).toBe(expected)
})
