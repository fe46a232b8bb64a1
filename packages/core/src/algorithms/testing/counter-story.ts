import fc from "fast-check"
import { expect } from "vitest"
import { ceilingOf, type Policy } from "../../ground/policy.ts"
import type { Algorithm, CounterState } from "../algorithm.ts"
import { algorithmOf } from "../kinds.ts"

/** Returns a policy for a test, from its limit, window and the members that its algorithm needs. */
export function policyOf(shape: Partial<Policy> & Pick<Policy, "algorithm" | "limit" | "windowMs">): Policy {
  return { name: "p", counter: "p", align: "epoch", ...shape }
}

/**
 * A request with its time, its cost, the milliseconds to wait (0 if admitted), and the units that remain afterwards.
 */
export type Row = readonly [atMs: number, cost: number, waitMs: number, remaining: number]

/** Takes each row's cost at its time from one counter, and compares the results of all rows. */
export function expectLedger(policy: Policy, rows: readonly Row[]): void {
  const counter = new Counter(policy)
  const played = rows.map(([atMs, cost]): Row => {
    const waitMs = counter.waitMs(atMs, cost)
    expect(counter.take(atMs, cost)).toBe(waitMs === 0)
    return [atMs, cost, waitMs, counter.remaining(atMs)]
  })
  expect(played).toEqual(rows)
}

/** A counter that behaves as in a store, because each call reads and writes the state. */
export class Counter {
  readonly policy: Policy
  readonly algorithm: Algorithm
  state: CounterState | undefined

  constructor(policy: Policy) {
    this.policy = policy
    this.algorithm = algorithmOf(policy)
  }

  look(atMs: number): CounterState {
    this.state = this.algorithm.at(this.state, this.policy, atMs)
    return this.state
  }

  take(atMs: number, cost: number): boolean {
    const { policy, algorithm } = this
    const state = this.look(atMs)
    if (algorithm.admits(state, policy, cost, atMs)) {
      this.charge(atMs, cost)
      return true
    }
    if (policy.countRejected === true && cost <= ceilingOf(policy)) {
      this.state = algorithm.withRejected(state, policy, cost, atMs)
    }
    return false
  }

  /** Counts units whether or not they fit. */
  charge(atMs: number, units: number): CounterState {
    this.state = this.algorithm.withUnits(this.look(atMs), this.policy, units, atMs)
    return this.state
  }

  refund(atMs: number, units: number, after: CounterState): void {
    this.state = this.algorithm.withoutUnits(this.look(atMs), this.policy, units, after, atMs)
  }

  used(atMs: number): number {
    return this.algorithm.used(this.look(atMs), this.policy, atMs)
  }

  remaining(atMs: number): number {
    return Math.max(0, (this.policy.burst ?? this.policy.limit) - this.used(atMs))
  }

  waitMs(atMs: number, cost: number): number {
    return this.algorithm.retryAfterMs(this.look(atMs), this.policy, cost, atMs)
  }

  /** Returns a separate counter with the same state. */
  copy(): Counter {
    const copy = new Counter(this.policy)
    copy.state = this.state
    return copy
  }
}

/** A request for `cost` units after `afterMs` milliseconds. If `afterMs` is negative, the clock goes back. */
export interface StoryStep {
  readonly afterMs: number
  readonly cost: number
}

export interface CounterStory {
  readonly policy: Policy
  readonly startMs: number
  readonly steps: readonly StoryStep[]
}

/** The kinds of counters for which stories are generated. */
export type Kind = (typeof KINDS)[number]

export const KINDS = [
  "sliding",
  "fixed",
  "first-hit",
  "calendar",
  "bucketed",
  "strict",
  "log",
  "token",
  "leaky",
  "periodic",
] as const

const EPOCH_MS = Date.UTC(2024, 0, 1)
const MONTH_MS = 30 * 86_400_000

/**
 * Generates stories with cases in which counters often fail, such as bursts at one instant, milliseconds around a
 * boundary, and pauses of a window or more. Some windows last one millisecond, or have a length that is not a
 * multiple of the sub-windows. With `countsRejected`, some policies count refused units.
 */
export function counterStories(
  kind: Kind,
  stepsBack = false,
  countsRejected = false,
): fc.Arbitrary<CounterStory> {
  return policies(kind, countsRejected).chain((policy) =>
    fc.record({
      policy: fc.constant(policy),
      startMs: fc.nat(policy.windowMs).map((offset) => EPOCH_MS + offset),
      steps: fc.array(steps(policy, stepsBack), { minLength: 1, maxLength: 40 }),
    }),
  )
}

function policies(kind: Kind, countsRejected: boolean): fc.Arbitrary<Policy> {
  const usual = fc.record({
    limit: fc.oneof(fc.constantFrom(1, 2, 3, 10), fc.integer({ min: 1, max: 60 })),
    windowMs: fc.constantFrom(1, 2, 7, 61, 100, 1_000, 60_000),
  })
  // With these amounts, time is counted in whole seconds.
  const large = fc.record({ limit: fc.constantFrom(5_000_000, 5_000_017), windowMs: fc.constant(MONTH_MS) })
  const amounts = fc.oneof({ weight: 6, arbitrary: usual }, { weight: 1, arbitrary: large })
  return fc
    .tuple(
      amounts,
      fc.constantFrom(1, 2, 3, 6, 7, 60),
      fc.constantFrom(0.1, 0.5, 1, 1, 1.5, 3),
      countsRejected ? fc.constantFrom(false, false, true) : fc.constant(false),
    )
    .map(([{ limit, windowMs }, buckets, part, countRejected]) => {
      const burst = Math.max(1, Math.floor(limit * part))
      const policy = policyOf({ limit, windowMs, ...membersOf(kind, windowMs, buckets, burst) })
      return countRejected ? { ...policy, countRejected } : policy
    })
}

function membersOf(
  kind: Kind,
  windowMs: number,
  buckets: number,
  burst: number,
): Pick<Policy, "algorithm"> & Partial<Pick<Policy, "align" | "periods" | "buckets" | "burst" | "refill">> {
  switch (kind) {
    case "sliding":
      return { algorithm: "sliding-window" }
    case "fixed":
      return { algorithm: "fixed-window" }
    case "first-hit":
      return { algorithm: "fixed-window", align: "first-hit" }
    case "calendar":
      return { algorithm: "fixed-window", periods: periodsOf(windowMs, buckets) }
    case "bucketed":
      return { algorithm: "sliding-window", buckets }
    case "strict":
      return { algorithm: "sliding-window-strict", buckets }
    case "log":
      return { algorithm: "sliding-log" }
    case "token":
      return { algorithm: "token-bucket", burst }
    case "leaky":
      return { algorithm: "leaky-bucket", burst }
    case "periodic":
      return { algorithm: "token-bucket", burst, refill: "periodic" }
  }
}

/** Returns the boundaries of periods of different lengths, at most `windowMs`. */
function periodsOf(windowMs: number, divisor: number): readonly number[] {
  const shorterMs = Math.ceil(windowMs / divisor)
  const lengths = [windowMs, shorterMs, windowMs, Math.ceil((windowMs + shorterMs) / 2), shorterMs]
  const ends = lengths.map((_, at) => lengths.slice(0, at + 1).reduce((sum, ms) => sum + ms, 0))
  return [0, ...ends].map((ms) => EPOCH_MS - 7 + ms)
}

function steps({ limit, windowMs, buckets = 4, burst = limit }: Policy, stepsBack: boolean) {
  const bucketMs = Math.ceil(windowMs / buckets)
  const forwards = fc.oneof(
    fc.constantFrom(0, 0, 1, bucketMs - 1, bucketMs, windowMs - 1, windowMs, windowMs + 1, 2 * windowMs),
    fc.nat(Math.ceil(windowMs / limit)),
    fc.nat(bucketMs),
    fc.nat(windowMs),
  )
  const back = fc.oneof(
    fc.constantFrom(1, bucketMs, windowMs - 1, windowMs, windowMs + 1, 50 * windowMs),
    fc.nat(2 * windowMs),
  )
  const most = Math.max(limit, burst)
  return fc.record({
    afterMs: stepsBack
      ? fc.oneof({ weight: 3, arbitrary: forwards }, { weight: 1, arbitrary: back.map((ms) => -ms) })
      : forwards,
    cost: fc.oneof(fc.constantFrom(1, 1, 0, burst, burst + 1), fc.nat(Math.ceil(most / 4)), fc.nat(most)),
  })
}
