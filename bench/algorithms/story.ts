import { createLimiter, type Rule } from "@sluice/core"
import { START_MS } from "./counter.ts"
import { MostIn } from "./most-in.ts"

/** The outcome of one request. */
export interface Told {
  /** Milliseconds since the start of the story. */
  readonly atMs: number
  readonly allowed: boolean
  /** The time at which the request reached the service, after its delay. */
  readonly goesMs: number
}

export interface Story {
  readonly told: readonly Told[]
  /** The most requests that reached the service in any minute. */
  readonly most: number
}

export const LIMIT = 10
export const WINDOW_MS = 60_000
export const LENGTH_MS = 240_000

/**
 * The requests of one client in four minutes, the same for every algorithm. The requests are a burst across the first
 * boundary, a steady flow a little above the limit, a pause, and another burst.
 */
const ARRIVALS_MS: readonly number[] = [
  ...times(50, 59, 0.75),
  ...times(60.5, 68, 0.75),
  ...times(72, 178, 4),
  ...times(224, 233, 0.75),
]

/** Sends the requests to a limiter with the given rule and a simulated clock, and returns its decisions. */
export async function tell(
  rule: Pick<Rule, "algorithm" | "buckets" | "align" | "refill" | "burst">,
): Promise<Story> {
  let nowMs = START_MS
  const limiter = createLimiter({
    limit: LIMIT,
    window: WINDOW_MS,
    ...rule,
    throttle: "hard",
    clock: { now: () => nowMs },
  })
  const told: Told[] = []
  for (const atMs of ARRIVALS_MS) {
    nowMs = START_MS + atMs
    const { allowed, delayMs } = await limiter.decide({ remoteAddress: "192.0.2.1" })
    told.push({ atMs, allowed, goesMs: atMs + delayMs })
  }
  await limiter.close()
  const any = new MostIn({ lengthMs: WINDOW_MS, isAligned: false })
  for (const { allowed, goesMs } of told) if (allowed) any.add({ atMs: goesMs, units: 1 })
  return { told, most: any.most }
}

/** Returns times in milliseconds, `everyS` seconds apart, from `fromS` to at most `toS`. */
function times(fromS: number, toS: number, everyS: number): number[] {
  return Array.from({ length: Math.floor((toS - fromS) / everyS) + 1 }, (_, i) =>
    Math.round((fromS + i * everyS) * 1_000),
  )
}
