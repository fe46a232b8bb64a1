import type { Algorithm } from "./algorithm.ts"
import { bucketLevel, delayMsOf } from "./bucket-level.ts"

/**
 * The token bucket: as many tokens as `burst`, of which L come back in each window, evenly. Admits when there are tokens
 * for the cost. Worst case in any window of length W: burst + L.
 */
export const tokenBucket: Algorithm = bucketLevel

/**
 * The leaky bucket: room for `burst` units, of which L flow out in each window, evenly. Admits when there is room, and
 * tells how long to hold what was admitted until it is its turn: L per W go on, one after the other.
 */
export const leakyBucket: Algorithm = { ...bucketLevel, delayMs: delayMsOf }
