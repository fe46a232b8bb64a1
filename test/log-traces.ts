import fc from "fast-check"
import type { Policy } from "../packages/core/src/ground/policy.ts"

/** A step on one sliding log, `afterMs` after the previous step. The clock may go back. */
export type LogStep = { readonly afterMs: number; readonly under: number } & (
  | { readonly kind: "take"; readonly cost: number; readonly times: number }
  /** Refunds units of an earlier decision, counted backwards from the latest. A negative number charges units. */
  | { readonly kind: "refund"; readonly nth: number; readonly units: number }
)

/** A trace of one counter, with the two limits that apply to it in turn, and the steps. */
export interface LogTrace {
  readonly policies: readonly [Policy, Policy]
  readonly startMs: number
  readonly steps: readonly LogStep[]
}

const WINDOWS_MS = [1, 7, 61, 63, 64, 100, 1_000, 4_095, 4_096, 60_000, 3_600_000]
const LIMITS = [1, 2, 3, 5, 10, 40, 63, 64, 200]

/**
 * Generates traces for the edge cases of a packed log: several requests in one millisecond, and costs that need an
 * additional digit. Some steps lie in the milliseconds around the end of a window, and clocks jump backward and
 * forward. Takes of zero units are charged later. Limits are reduced, raised, and changed to count refusals.
 */
export function logTraces(): fc.Arbitrary<LogTrace> {
  return fc
    .record({
      windowMs: fc.constantFrom(...WINDOWS_MS),
      limits: fc.tuple(fc.constantFrom(...LIMITS), fc.constantFrom(...LIMITS, 0)),
      countRejected: fc.tuple(fc.boolean(), fc.boolean()),
      extra: fc.constantFrom(0, 0, 7),
    })
    .chain(({ windowMs, limits, countRejected, extra }) => {
      const policyOf = (nth: 0 | 1): Policy => ({
        name: "log",
        counter: "log",
        algorithm: "sliding-log",
        align: "epoch",
        windowMs,
        limit: limits[nth],
        countRejected: countRejected[nth],
        ...(extra === 0 ? {} : { extra }),
      })
      const policies = [policyOf(0), policyOf(1)] as const
      return fc.record({
        policies: fc.constant(policies),
        startMs: fc.nat(3 * windowMs).map((offset) => Date.UTC(2024, 0, 1) + offset),
        steps: fc.array(steps(policies), { minLength: 1, maxLength: 60 }),
      })
    })
}

function steps([policy, other]: readonly [Policy, Policy]): fc.Arbitrary<LogStep> {
  const { windowMs } = policy
  const most = Math.max(policy.limit, other.limit) + 8
  const on = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(0, 0, 1) },
    { weight: 3, arbitrary: fc.nat(Math.ceil(windowMs / most)) },
    { weight: 2, arbitrary: fc.constantFrom(windowMs - 1, windowMs, windowMs + 1) },
    { weight: 1, arbitrary: fc.nat(2 * windowMs) },
  )
  const back = fc.oneof(fc.constantFrom(1, windowMs, windowMs + 1, 50 * windowMs), fc.nat(windowMs))
  const afterMs = fc.oneof({ weight: 9, arbitrary: on }, { weight: 1, arbitrary: back.map((ms) => -ms) })
  const under = fc.constantFrom(0, 0, 0, 1)
  const few = fc.constantFrom(1, 1, 1, 2, 3)
  const cost = fc.oneof(few, few, fc.constant(0), fc.nat(most), fc.constantFrom(policy.limit, other.limit))
  const units = fc.oneof(
    few,
    few,
    fc.nat(most).filter((some) => some > 0),
    fc.constantFrom(64, 5_000),
  )
  return fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant("take" as const),
        afterMs,
        under,
        cost,
        times: fc.constantFrom(1, 1, 2, 5),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("refund" as const),
        afterMs,
        under,
        nth: fc.oneof(fc.nat(3), fc.nat(60)),
        units: fc.oneof(
          units,
          units.map((some) => -some),
        ),
      }),
    },
  )
}
