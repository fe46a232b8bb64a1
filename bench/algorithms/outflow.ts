import { createLimiter } from "@sluice/core"
import { random } from "../clients/sequence.ts"
import { START_MS } from "./counter.ts"
import { type Admission, MostIn } from "./most-in.ts"

/** The flow of requests from a leaky bucket to the service, when each request waits for its `delayMs`. */
export interface Outflow {
  /** The most requests that reached the service in any window. */
  readonly most: number
  readonly allowed: number
  /**
   * The shortest time between two requests that reached the service. `evenGapMs` is the time between two requests of
   * an even flow, rounded down.
   */
  readonly leastGapMs: number
  readonly evenGapMs: number
  readonly trace: readonly Admission[]
}

const LIMIT = 7
const WINDOW_MS = 100
const BURST = 20

/** Plays clients that send requests one by one and in bursts. A step is one request for one unit. */
export async function playOutflow(steps: number, seed: number): Promise<Outflow> {
  const next = random(seed)
  let nowMs = START_MS
  const limiter = createLimiter({
    limit: LIMIT,
    window: WINDOW_MS,
    burst: BURST,
    algorithm: "leaky-bucket",
    throttle: "hard",
    clock: { now: () => nowMs },
  })
  const any = new MostIn({ lengthMs: WINDOW_MS, isAligned: false })
  let lastMs = Number.NEGATIVE_INFINITY
  let leastGapMs = Number.POSITIVE_INFINITY
  for (let step = 0; step < steps; step++) {
    const { allowed, delayMs } = await limiter.decide({ remoteAddress: "192.0.2.1" })
    if (allowed) {
      const goesMs = nowMs + delayMs
      any.add({ atMs: goesMs, units: 1 })
      leastGapMs = Math.min(leastGapMs, goesMs - lastMs)
      lastMs = goesMs
    }
    if (!allowed || next() < 0.2) nowMs += Math.floor(next() * next() * 3 * WINDOW_MS)
  }
  await limiter.close()
  return {
    most: any.most,
    allowed: LIMIT,
    leastGapMs,
    evenGapMs: Math.floor(WINDOW_MS / LIMIT),
    trace: any.trace,
  }
}
