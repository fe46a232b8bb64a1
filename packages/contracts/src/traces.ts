import type { Policy } from "@sluice/core/stores"
import fc from "fast-check"

/**
 * One step of a trace. The clock advances by `afterMs`, or steps back if this is negative, and then a client requests
 * `cost` units.
 */
interface TraceStep {
  readonly afterMs: number
  readonly cost: number
}

/** A policy, the time at which the trace begins, and the steps of the trace. */
export interface Trace {
  readonly policy: Policy
  readonly startMs: number
  readonly steps: readonly TraceStep[]
}

export interface TraceOptions {
  /** True if the clock may also step back, by a millisecond up to many windows. Default: false. */
  readonly stepsBack?: boolean
  /** Window lengths in milliseconds. */
  readonly windowsMs?: readonly number[]
  readonly algorithms?: readonly Policy["algorithm"][]
  /** True if some policies count refused requests. Default: false. */
  readonly countsRejected?: boolean
}

const EPOCH_MS = Date.UTC(2024, 0, 1)
const DAY_MS = 86_400_000

/**
 * Generates traces around the edges of windows. The traces contain bursts, the milliseconds around a boundary, a
 * steady rate at the limit, and pauses of one and two windows. Costs are zero, one, the whole limit, and one more
 * than the limit.
 */
export function traces(options: TraceOptions = {}): fc.Arbitrary<Trace> {
  return policies(options).chain((policy) =>
    fc.record({
      policy: fc.constant(policy),
      startMs: fc.nat(policy.windowMs).map((offset) => EPOCH_MS + offset),
      steps: fc.array(steps(policy, options.stepsBack ?? false), { minLength: 1, maxLength: 60 }),
    }),
  )
}

/**
 * Generates policies of every algorithm. Limits range from one to five million per month. A window with such a large
 * limit is counted in whole seconds.
 */
function policies({ windowsMs, algorithms, countsRejected }: TraceOptions = {}): fc.Arbitrary<Policy> {
  const usual = fc.record({
    limit: fc.oneof(fc.constantFrom(1, 2, 10), fc.integer({ min: 1, max: 100 })),
    windowMs: windowsMs ? fc.constantFrom(...windowsMs) : fc.constantFrom(1, 7, 1_000, 60_000, DAY_MS),
  })
  const large = fc.record({
    limit: fc.constantFrom(5_000_000, 5_000_017),
    windowMs: fc.constantFrom(30 * DAY_MS, 30 * DAY_MS + 1),
  })
  const counting = fc.constantFrom(...(algorithms ?? (["sliding-window", "fixed-window"] as const)))
  return fc
    .record({
      amounts: windowsMs ? usual : fc.oneof({ weight: 5, arbitrary: usual }, { weight: 1, arbitrary: large }),
      algorithm: counting,
      firstHit: fc.boolean(),
      countRejected: countsRejected ? fc.boolean() : fc.constant(false),
    })
    .map(({ amounts, algorithm, firstHit, countRejected }) => ({
      name: "trace",
      counter: `${algorithm}-${amounts.windowMs}`,
      algorithm,
      ...amounts,
      align: algorithm === "fixed-window" && firstHit ? "first-hit" : "epoch",
      ...(countRejected && { countRejected }),
    }))
}

/** Generates the next step under a policy. */
function steps({ limit, windowMs }: Policy, stepsBack: boolean): fc.Arbitrary<TraceStep> {
  const forwards = fc.oneof(
    fc.constantFrom(0, 0, 1, windowMs - 1, windowMs, windowMs + 1, 2 * windowMs - 1, 2 * windowMs),
    fc.nat(Math.ceil(windowMs / limit)),
    fc.nat(windowMs),
    fc.nat(3 * windowMs),
  )
  const back = fc.oneof(
    fc.constantFrom(1, windowMs - 1, windowMs, windowMs + 1, 2 * windowMs, 50 * windowMs),
    fc.nat(windowMs),
    fc.nat(4 * windowMs),
  )
  return fc.record({
    afterMs: stepsBack
      ? fc.oneof({ weight: 3, arbitrary: forwards }, { weight: 1, arbitrary: back.map((ms) => -ms) })
      : forwards,
    cost: fc.oneof(
      fc.constantFrom(1, 1, 1, 0, limit, limit + 1),
      fc.nat(Math.ceil(limit / 4)),
      fc.nat(limit),
    ),
  })
}
