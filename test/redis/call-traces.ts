import fc from "fast-check"
import { ceilingOf, type Penalty, type Policy } from "../../packages/core/src/policy.ts"
import type { Check, CounterKey } from "../../packages/core/src/stores/store.ts"

export type Requests = readonly (readonly Check[])[]

/** What is done with a store, some time after the step before; the clock may have gone back. */
export type CallStep = { readonly afterMs: number } & (
  | { readonly kind: "take" | "peek"; readonly requests: Requests }
  /** Of what was taken so far, the nth ones, so many units more or fewer than were taken. */
  | { readonly kind: "giveBack"; readonly nths: readonly number[]; readonly more: number }
  | { readonly kind: "reset"; readonly keys: readonly CounterKey[] }
)

/** A few counters, the instant at which their story begins, and what happens to them. */
export interface CallTrace {
  readonly counters: readonly CounterKey[]
  /** All limits that each of the counters is counted under, by its name. */
  readonly policies: readonly Policy[]
  readonly startMs: number
  readonly steps: readonly CallStep[]
}

/** In place of a cost: all that remains when the step begins, or one unit more. */
export const ALL_THAT_REMAINS: number = -1
export const ONE_TOO_MANY: number = -2

/** As Redis keeps them packed: a count of at most 2^20 - 1. */
export const MOST_PACKED: number = 2 ** 20 - 1
const DAY_MS = 86_400_000
const WINDOWS_MS = [10, 1_000, 60_000, DAY_MS, 30 * DAY_MS]
const LIMITS = [1, 2, 5, 10, 100, MOST_PACKED, MOST_PACKED + 1]
const PARTITIONS = ["", "alice"]

/**
 * Calls of several requests on a few keys: each of one to four checks, equal ones among them, so that they are merged;
 * counters of one or two limits; time that moves by milliseconds, to the edges of windows, over many of them, and back.
 */
export function callTraces(): fc.Arbitrary<CallTrace> {
  return fc.array(counters(), { minLength: 1, maxLength: 3 }).chain((limits) => {
    // By its place: no two of a trace are one counter.
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

/** One counter, under one limit or two. */
function counters(): fc.Arbitrary<readonly Policy[]> {
  const usual = fc.record({ windowMs: fc.constantFrom(...WINDOWS_MS), limit: fc.constantFrom(...LIMITS) })
  // Five million a month, which is counted in whole seconds.
  const monthly = fc.record({
    windowMs: fc.constant(30 * DAY_MS),
    limit: fc.constantFrom(5_000_000, 5_000_017),
  })
  // Counts of which no share can be computed in one multiplication, in windows that are longer than years in seconds.
  const huge = fc.record({
    windowMs: fc.constantFrom(60_000, 30 * DAY_MS, 1_500 * DAY_MS),
    limit: fc.constantFrom(2 ** 40 + 1, 2 ** 50 + 7, Number.MAX_SAFE_INTEGER - 1),
  })
  return fc
    .record({
      amounts: fc.oneof(
        { weight: 6, arbitrary: usual },
        { weight: 1, arbitrary: monthly },
        { weight: 1, arbitrary: huge },
      ),
      kind: kinds(),
      extra: fc.option(fc.constantFrom(1, 3, 40), { freq: 3 }),
      other: fc.option(fc.constantFrom(0, 3, 7, MOST_PACKED), { freq: 2 }),
      // A limit may be told to count what it refuses, and the next one not: their counts are the same.
      countRejected: fc.constantFrom(NONE, NONE, [true, true], [true, false], [false, true]),
    })
    .map(({ amounts, kind, extra, other, countRejected }) => {
      if (kind.penalty !== undefined) return penalties(kind.penalty)
      const policy: Policy = { name: "trace", counter: "", align: "epoch", ...amounts, ...kind }
      const some = extra === null || isVast(policy) ? policy : { ...policy, extra }
      const exact = isLevel(some) && isVast(some) ? { ...some, ...LARGEST_LEVEL } : some
      // Under another limit the parts of a unit may be others too, and then the reading of one moves the other's.
      const most = Math.max(exact.limit, ceilingOf(exact)) + 1
      const isCoarse = isLevel(exact) && most * exact.windowMs > Number.MAX_SAFE_INTEGER
      const both = other === null || isCoarse ? [exact] : [exact, { ...exact, limit: other }]
      return both.map((one, i) => (countRejected[i] === true ? { ...one, countRejected: true } : one))
    })
}

const NONE: readonly boolean[] = []

/** The counter of a penalty, for so many refusals and for more. */
function penalties(penalty: Penalty): readonly Policy[] {
  const { refusals, withinMs, forMs } = penalty
  const policy: Policy = {
    name: "trace",
    counter: "",
    algorithm: "penalty",
    align: "epoch",
    limit: refusals,
    windowMs: Math.max(withinMs, forMs),
    penalty,
  }
  return [policy, { ...policy, limit: refusals + 2 }]
}

/** What tells one way to count from another. */
function kinds(): fc.Arbitrary<Pick<Policy, "algorithm"> & Partial<Policy>> {
  const buckets = fc.constantFrom(2, 3, 7, 12, 60)
  const burst = fc.option(fc.constantFrom(1, 4, 30, 1_000), { nil: undefined })
  const ofName = <Name extends Policy["algorithm"]>(name: Name) => fc.constant(name)
  return fc.oneof(
    fc.record({ algorithm: ofName("sliding-window") }),
    fc.record({
      algorithm: ofName("fixed-window"),
      align: fc.constantFrom("epoch" as const, "first-hit" as const),
    }),
    fc.record({ algorithm: ofName("sliding-window"), buckets }),
    fc.record({ algorithm: ofName("sliding-window-strict"), buckets }),
    fc.record({ algorithm: ofName("sliding-log") }),
    fc
      .record({
        algorithm: ofName("token-bucket"),
        burst,
        refill: fc.constantFrom("continuous" as const, "periodic" as const),
      })
      .map(withoutAbsent),
    fc.record({ algorithm: ofName("leaky-bucket"), burst }).map(withoutAbsent),
    fc.record({
      algorithm: ofName("penalty"),
      penalty: fc.record({
        refusals: fc.constantFrom(1, 2, 3),
        withinMs: fc.constantFrom(10, 1_000, DAY_MS),
        forMs: fc.constantFrom(1, 1_000, 60_000),
      }),
    }),
  )
}

function withoutAbsent<Kind extends { readonly burst: number | undefined }>({
  burst,
  ...kind
}: Kind): Omit<Kind, "burst"> & { readonly burst?: number } {
  return burst === undefined ? kind : { ...kind, burst }
}

/** Whether units are counted in parts. */
function isLevel({ algorithm, refill }: Policy): boolean {
  return (algorithm === "token-bucket" && refill !== "periodic") || algorithm === "leaky-bucket"
}

function isVast({ limit }: Policy): boolean {
  return limit > 2 ** 32
}

/** Of a month so many can be counted in parts of a second. */
const LARGEST_LEVEL = { limit: 2 ** 31 + 1, windowMs: 30 * DAY_MS } as const

function steps(policies: readonly Policy[]): fc.Arbitrary<CallStep> {
  const shortestMs = Math.min(...policies.map(({ windowMs }) => windowMs))
  const afterMs = fc.constantFrom(...policies).chain(({ windowMs }) => moves(windowMs, shortestMs))
  const check = checks(policies)
  const key = check.map(({ policy, partition }) => ({ policy, partition }))
  const requests = calls(fc.array(check, { minLength: 1, maxLength: 4 }))
  const ofKind = <Kind extends string>(kind: Kind) => fc.constant(kind)
  return fc.oneof(
    { weight: 12, arbitrary: fc.record({ kind: ofKind("take"), afterMs, requests }) },
    { weight: 1, arbitrary: fc.record({ kind: ofKind("peek"), afterMs, requests }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: ofKind("giveBack"),
        afterMs,
        nths: fc.array(fc.nat(50), { minLength: 1, maxLength: 3 }),
        more: fc.constantFrom(0, 0, 0, -1, 1, 50, -40),
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

/** Up to 24 requests, of which many are equal: single checks mostly, and in between any of them again. */
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
    fc.constantFrom(1, 1, 0, few, Math.ceil(limit / 2), limit, limit + 1),
    fc.constantFrom(1, 2, 3).filter((cost) => cost <= limit + 1),
    fc.nat(few),
    fc.nat(limit + 1),
    fc.constantFrom(ALL_THAT_REMAINS, ONE_TOO_MANY),
  )
}

/**
 * Milliseconds that go by: mostly few, often to the edge of a window, now and then many windows, or back. Back by 50 of
 * the shortest windows at the most: a packed value tells a window from a past one when it lies up to 2,038 ahead.
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
