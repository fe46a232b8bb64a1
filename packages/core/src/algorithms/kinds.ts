import type { Policy } from "../ground/policy.ts"
import type { Algorithm } from "./algorithm.ts"
import { leakyBucket, tokenBucket } from "./bucket.ts"
import { bucketedWindow } from "./bucketed-window.ts"
import { fixedWindow } from "./fixed-window.ts"
import { penalty } from "./penalty.ts"
import { periodicRefill } from "./periodic-refill.ts"
import { slidingLog } from "./sliding-log.ts"
import { slidingWindow } from "./sliding-window.ts"
import { strictWindow } from "./strict-window.ts"

/** The algorithm behind each name that a policy may carry. */
const ALGORITHMS: Readonly<Record<Policy["algorithm"], Algorithm>> = {
  "sliding-window": slidingWindow,
  "sliding-window-strict": strictWindow,
  "sliding-log": slidingLog,
  "fixed-window": fixedWindow,
  "token-bucket": tokenBucket,
  "leaky-bucket": leakyBucket,
  penalty,
}

/** The algorithm that a policy is counted by. */
export function algorithmOf({ algorithm, buckets, refill }: Policy): Algorithm {
  if (algorithm === "sliding-window") return buckets === undefined ? slidingWindow : bucketedWindow
  return refill === "periodic" ? periodicRefill : ALGORITHMS[algorithm]
}
