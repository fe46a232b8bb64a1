import { random } from "../clients/sequence.ts"
import { Counter, START_MS } from "./counter.ts"
import { type Bound, type Kind, policyOf, type Size, wholeSize } from "./kinds.ts"
import { type Admission, MostIn } from "./most-in.ts"

/** The most units that a counter admitted, the most that a bound allows, and the counter's size. */
export interface Worst {
  readonly bound: Bound
  readonly size: Required<Size>
  readonly most: number
  readonly allowed: number
  readonly trace: readonly Admission[]
}

const STEPS_A_GAME = 2_000
const LIMITS = [1, 2, 3, 7, 10, 60, 100]
const WINDOWS_MS = [7, 61, 100, 1_000, 60_000]
const BUCKETS = [2, 3, 7, 60]
const BURSTS = [0.1, 1, 1, 3]

/**
 * Plays a client that wants as many units as possible in one burst. The client requests the whole limit and then less
 * and less, around the instants at which counters change. A game consists of up to 2,000 requests to a new counter. A
 * step is one request. The same seed produces the same games.
 */
export function playAdversary(kind: Kind, steps: number, seed: number): readonly Worst[] {
  const next = random(seed)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T
  let worst: readonly Worst[] = []
  for (let left = steps; left > 0; ) {
    const limit = pick(LIMITS)
    const burst = Math.max(1, Math.floor(limit * pick(BURSTS)))
    const size = wholeSize(kind, { limit, windowMs: pick(WINDOWS_MS), buckets: pick(BUCKETS), burst })
    const inGame = Math.min(left, STEPS_A_GAME)
    worst = worseOf(worst, playGame(kind, size, inGame, next))
    left -= inGame
  }
  return worst
}

/**
 * Returns the worse of two results for each bound: the one with the larger share of the allowed units. If the shares
 * are equal, the one with more units is worse.
 */
export function worseOf(some: readonly Worst[], others: readonly Worst[]): readonly Worst[] {
  if (some.length === 0) return others
  return some.map((one, i) => {
    const other = others[i] as Worst
    const [share, otherShare] = [one.most / one.allowed, other.most / other.allowed]
    return otherShare > share || (otherShare === share && other.most > one.most) ? other : one
  })
}

/** Returns a recorder that compares the admissions of one counter with each bound of its kind. */
export function watch(
  { bounds }: Kind,
  size: Required<Size>,
): { add(admission: Admission): void; worst(): readonly Worst[] } {
  const watched = bounds.map((bound) => {
    const { isAligned } = bound
    return { bound, most: new MostIn({ lengthMs: bound.lengthMs(size), isAligned }) }
  })
  return {
    add(admission) {
      for (const { most } of watched) most.add(admission)
    },
    worst: () =>
      watched.map(({ bound, most }) => {
        return { bound, size, most: most.most, allowed: bound.most(size), trace: most.trace }
      }),
  }
}

function playGame(kind: Kind, size: Required<Size>, steps: number, next: () => number): readonly Worst[] {
  const counter = new Counter(policyOf(kind, size))
  const watched = watch(kind, size)
  let nowMs = START_MS
  let cost = firstCost(size, next)
  for (let step = 0; step < steps; step++) {
    const { granted } = counter.take(nowMs, cost)
    if (granted) watched.add({ atMs: nowMs, units: cost })
    if (granted && next() < 0.5) continue
    cost = Math.floor(cost / 2)
    if (cost > 0 && next() < 0.9) continue
    nowMs += pauseMs(size, nowMs, next)
    cost = firstCost(size, next)
  }
  return watched.worst()
}

function firstCost({ limit, burst }: Required<Size>, next: () => number): number {
  return next() < 0.8 ? Math.max(limit, burst) : 1 + Math.floor(next() * limit)
}

/**
 * Returns a random pause. Most pauses end near an instant at which the counter may change, such as the end of a window
 * or sub-window. The other pauses are arbitrary.
 */
function pauseMs(size: Required<Size>, nowMs: number, next: () => number): number {
  const { limit, windowMs, buckets } = size
  const bucketMs = Math.ceil(windowMs / buckets)
  const around = Math.floor(next() * 4) - 2
  const untilMs = [
    windowMs - (nowMs % windowMs),
    2 * windowMs - (nowMs % windowMs),
    bucketMs - (nowMs % bucketMs),
    windowMs,
    windowMs + bucketMs - (nowMs % bucketMs),
    Math.ceil(windowMs / limit),
    1,
    Math.floor(next() * windowMs),
    Math.floor(next() * bucketMs),
  ][Math.floor(next() * 9)] as number
  return Math.max(0, untilMs + around)
}
