import type { Drill } from "./drill.ts"
import { anyWindow } from "./drills/any-window.ts"
import { clockOff } from "./drills/clock-off.ts"
import { exact } from "./drills/exact.ts"
import { head } from "./drills/head.ts"
import { headers } from "./drills/headers.ts"
import { ipv6 } from "./drills/ipv6.ts"
import { junkKeys } from "./drills/junk-keys.ts"
import { atStart, closed, frozen } from "./drills/redis-gone.ts"
import { refusedCost } from "./drills/refused-cost.ts"
import { retry } from "./drills/retry.ts"
import { severalLimits } from "./drills/several-limits.ts"

/** All drills, in the order in which they run and are printed. */
export const DRILLS: readonly Drill[] = [
  ...[anyWindow, retry, severalLimits, refusedCost, exact, clockOff],
  ...[frozen, closed, atStart],
  ...[head, junkKeys, ipv6, headers],
]
