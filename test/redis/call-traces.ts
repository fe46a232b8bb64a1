import fc from "fast-check"
import { ceilingOf, type Policy } from "../../packages/core/src/ground/policy.ts"
import type { Check, CounterKey } from "../../packages/core/src/stores/store.ts"
import { tracedPolicies } from "./traced-policies.ts"

export type Requests = readonly (readonly Check[])[]

/** A step of a trace, `afterMs` after the previous step. A negative `afterMs` makes the clock go back. */
export type CallStep = { readonly afterMs: number } & (
  | { readonly kind: "take" | "peek"; readonly requests: Requests }
  /**
   * Refunds earlier granted checks, whose indexes `nths` count from the latest. `more` is added to the units that
   * were taken. `MOST_CHARGED` charges the largest allowed amount. `RENEWED` charges the units that were taken, which
   * renews permits. `GRANTED` grants them under a calendar period, or takes them back if `moved`. If `moved`, the counter's state is
   * first updated to the time of the refund.
   */
  | {
      readonly kind: "refund"
      readonly nths: readonly number[]
      readonly more: number | typeof MOST_CHARGED | typeof RENEWED | typeof GRANTED
      readonly moved: boolean
    }
  | { readonly kind: "reset"; readonly keys: readonly CounterKey[] }
)

/** A trace, with a few counters, the instant at which the trace begins, and its steps. */
export interface CallTrace {
  readonly counters: readonly CounterKey[]
  /** All policies under which the counters are counted. `policy.counter` is the name of the policy's counter. */
  readonly policies: readonly Policy[]
  readonly startMs: number
  readonly steps: readonly CallStep[]
}

/** Costs that stand for all units that remain when the step begins, and for one unit more. */
export const ALL_THAT_REMAINS: number = -1
export const ONE_TOO_MANY: number = -2
/** A number of units that stands for a year's quota. */
export const MOST_CHARGED = "most"
/** A number of units that stands for the units that were taken. */
export const RENEWED = "renewed"
/** A refund that grants its units instead. */
export const GRANTED = "granted"

const PARTITIONS = ["", "alice"]

/**
 * Generates calls of several requests on a few keys. Each request has one to four checks. Some requests are equal, so
 * that they are merged. A counter has one or two limits. The clock moves by milliseconds, to the edges of windows,
 * over many windows, and back.
 */
export function callTraces(): fc.Arbitrary<CallTrace> {
  return fc.array(tracedPolicies(), { minLength: 1, maxLength: 3 }).chain((limits) => {
    // Name counters by their index, so that no two counters of a trace have the same name.
    const policies = limits.flatMap((some, i) =>
      some.map((policy) => ({ ...policy, counter: `counter${i}` })),
    )
    const [{ windowMs }] = policies as [Policy]
    return fc.record({
      policies: fc.constant(policies),
      counters: fc.constant(
        limits.flatMap((_, i) => {
          const policy = policies.find(({ counter }) => counter === `counter${i}`) as Policy
          return PARTITIONS.map((partition) => ({ policy, partition }))
        }),
      ),
      startMs: fc.nat(3 * windowMs).map((offset) => Date.UTC(2024, 0, 1) + offset),
      steps: fc.array(steps(policies), { minLength: 1, maxLength: 40 }),
    })
  })
}

function steps(policies: readonly Policy[]): fc.Arbitrary<CallStep> {
  const shortestMs = Math.min(...policies.map(({ windowMs }) => windowMs))
  const afterMs = fc.constantFrom(...policies).chain(({ windowMs }) => moves(windowMs, shortestMs))
  const check = checks(policies)
  const key = check.map(({ policy, partition }) => ({ policy, partition }))
  const requests = calls(fc.array(check, { minLength: 1, maxLength: 4 }).map(inOnePeriod))
  const ofKind = <Kind extends string>(kind: Kind) => fc.constant(kind)
  return fc.oneof(
    { weight: 12, arbitrary: fc.record({ kind: ofKind("take"), afterMs, requests }) },
    { weight: 1, arbitrary: fc.record({ kind: ofKind("peek"), afterMs, requests }) },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: ofKind("refund"),
        afterMs,
        nths: fc.array(fc.nat(50), { minLength: 1, maxLength: 8 }),
        more: fc.constantFrom<number | typeof MOST_CHARGED | typeof RENEWED | typeof GRANTED>(
          ...[0, 0, -1, -1, 1, 50, -40],
          ...([MOST_CHARGED, RENEWED, RENEWED, GRANTED, GRANTED] as const),
        ),
        moved: fc.nat(3).map((nth) => nth === 0),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: ofKind("reset"),
        afterMs,
        keys: fc.array(key, { minLength: 1, maxLength: 2 }),
      }),
    },
  )
}

/** A request has one anchor under a rule, so its checks of a counter have the calendar periods of the first one. */
function inOnePeriod(request: readonly Check[]): readonly Check[] {
  return request.map((check) => {
    const first = request.find(({ policy }) => policy.counter === check.policy.counter) ?? check
    return check.policy.periods === undefined ? check : { ...check, policy: first.policy }
  })
}

/**
 * Generates up to 24 requests, many of which are equal. Most requests have a single check, but any other request may
 * come between two equal ones.
 */
function calls(request: fc.Arbitrary<readonly Check[]>): fc.Arbitrary<Requests> {
  const single = request.map(([check]) => [check as Check])
  return fc
    .array(fc.oneof(single, single, request), { minLength: 1, maxLength: 3 })
    .chain((few) =>
      fc.oneof(
        { weight: 1, arbitrary: fc.constant(few) },
        { weight: 1, arbitrary: fc.array(fc.constantFrom(...few), { minLength: 1, maxLength: 24 }) },
      ),
    )
}

function checks(policies: readonly Policy[]): fc.Arbitrary<Check> {
  return fc.constantFrom(...policies).chain((policy) =>
    fc.record({
      policy: fc.constant(policy),
      partition: fc.constantFrom(...PARTITIONS),
      cost: policy.algorithm === "penalty" ? fc.constant(1) : costs(ceilingOf(policy)),
      shadow: fc.nat(4).map((nth) => nth === 0),
    }),
  )
}

function costs(limit: number): fc.Arbitrary<number> {
  const few = Math.floor(limit / 4)
  return fc.oneof(
    fc.constantFrom(1, 1, 0, 0, few, Math.ceil(limit / 2), limit, limit + 1),
    fc.constantFrom(1, 2, 3).filter((cost) => cost <= limit + 1),
    fc.nat(few),
    fc.nat(limit + 1),
    fc.constantFrom(ALL_THAT_REMAINS, ONE_TOO_MANY),
  )
}

/**
 * Generates steps in time, in milliseconds: mostly short, often to a window's edge, sometimes over many windows, or
 * back. A step goes back by at most 50 of the shortest windows. If a window is more than 2,038 windows in the future,
 * its packed value looks like that of a past window.
 */
function moves(windowMs: number, shortestMs: number): fc.Arbitrary<number> {
  const edges = [1, windowMs - 1, windowMs, windowMs + 1, 2 * windowMs - 1, 2 * windowMs, 2 * windowMs + 1]
  const on = fc.oneof(
    fc.constant(0),
    fc.constant(0),
    fc.constantFrom(...edges),
    fc.nat(Math.ceil(windowMs / 10)),
    fc.nat(windowMs),
    fc.nat(4 * windowMs),
    fc.nat(50 * windowMs),
  )
  const mostMs = 50 * shortestMs
  const back = fc
    .oneof(fc.constantFrom(...edges), fc.nat(windowMs), fc.nat(3 * windowMs), fc.nat(mostMs))
    .map((ms) => Math.min(ms, mostMs))
  return fc.oneof({ weight: 5, arbitrary: on }, { weight: 1, arbitrary: back.map((ms) => -ms) })
}
