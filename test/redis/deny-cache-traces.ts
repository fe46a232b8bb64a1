import fc from "fast-check"
import type { RateRule } from "../../packages/core/src/rules/rule.ts"

/** A request of a trace. Rules count the request under `who`, and `method` selects the rules that apply. */
export interface TracedRequest {
  readonly who: string
  readonly method: "GET" | "POST"
}

/** One call of a limiter, `afterMs` after the previous call. */
export type LimiterStep = { readonly afterMs: number; readonly request: TracedRequest } & (
  | { readonly kind: "decide"; readonly cost: number; readonly times: number }
  | { readonly kind: "peek" | "takeUpTo"; readonly cost: number }
  | { readonly kind: "reset"; readonly policies: readonly string[] | undefined }
  /** `nth` is an index of the decisions so far, counted from the latest. */
  | { readonly kind: "refund"; readonly nth: number }
  | { readonly kind: "settle"; readonly nth: number; readonly units: number }
)

/** The rules of a limiter, the instant at which the trace begins, and the calls. */
export interface LimiterTrace {
  readonly rules: readonly RateRule[]
  readonly startMs: number
  readonly steps: readonly LimiterStep[]
}

const WINDOWS_MS = [1_000, 2_000, 60_000, 3_600_000]

/**
 * Generates one to four rules of any algorithm and up to 40 calls of a few clients. Most calls exceed the remaining
 * quota.
 */
export function limiterTraces(): fc.Arbitrary<LimiterTrace> {
  return fc
    .array(rules(), { minLength: 1, maxLength: 4, size: "max" })
    .map((list) => list.map((rule, i) => ({ name: `rule${i}`, ...rule })))
    .chain((list) =>
      fc.record({
        rules: fc.constant(list),
        startMs: fc.nat(7_200_000).map((offset) => Date.UTC(2024, 0, 1) + offset),
        steps: fc.array(steps(list), { minLength: 5, maxLength: 40, size: "max" }),
      }),
    )
}

type Unnamed = Omit<RateRule, "name">

function rules(): fc.Arbitrary<Unnamed> {
  return fc
    .record({
      counting: counting(),
      limit: fc.constantFrom(1, 2, 2, 3, 3, 4, 5, 8),
      window: fc.constantFrom(...WINDOWS_MS),
      isShared: fc.nat(3).map((nth) => nth === 0),
      isShadow: fc.nat(7).map((nth) => nth === 0),
      isForGet: fc.nat(4).map((nth) => nth === 0),
      countsRejected: fc.nat(9).map((nth) => nth === 0),
      penalty: fc.option(
        fc.record({
          refusals: fc.integer({ min: 1, max: 3 }),
          within: fc.constantFrom(1_000, 60_000),
          for: fc.oneof(fc.constantFrom(1_500, 60_000), fc.constant([1_500, 4_000, 60_000])),
        }),
        { freq: 5, nil: undefined },
      ),
      isSoft: fc.nat(5).map((nth) => nth === 0),
      cost: fc.constantFrom(1, 1, 1, 2),
    })
    .map(({ counting: members, limit, window, isShared, penalty, ...is }) => ({
      ...members,
      limit,
      window,
      cost: Math.min(is.cost, limit),
      field: isShared ? "service" : "who",
      throttle: is.isSoft ? { kind: "soft" as const, percent: 100 } : ("hard" as const),
      ...(is.isShadow && { shadow: true }),
      ...(is.isForGet && { match: { methods: ["GET"] } }),
      ...(is.countsRejected && { countRejected: true }),
      // A shadow rule has no penalty, because a penalty blocks clients and a shadow rule must not refuse a client.
      ...(penalty !== undefined && !isShared && !is.isShadow && { penalty }),
    }))
}

function counting(): fc.Arbitrary<Partial<RateRule>> {
  const burst = fc.integer({ min: 2, max: 8 })
  const buckets = fc.constantFrom(2, 5, 10)
  const of = <Name extends RateRule["algorithm"]>(name: Name) => fc.constant(name)
  return fc.oneof(
    fc.record({ algorithm: of("sliding-window") }),
    fc.record({ algorithm: of("sliding-window"), buckets }),
    fc.record({ algorithm: of("sliding-window-strict"), buckets }),
    fc.record({ algorithm: of("sliding-log") }),
    fc.record({
      algorithm: of("fixed-window"),
      align: fc.constantFrom("epoch" as const, "first-hit" as const),
    }),
    fc.record({
      algorithm: of("token-bucket"),
      burst,
      refill: fc.constantFrom("continuous" as const, "periodic" as const),
    }),
    fc.record({ algorithm: of("leaky-bucket"), burst }),
  )
}

function steps(list: readonly RateRule[]): fc.Arbitrary<LimiterStep> {
  const names = list.map(({ name }) => name as string)
  const common = { afterMs: fc.constantFrom(...list).chain(moves), request: requests() }
  const of = <Kind extends LimiterStep["kind"]>(kind: Kind) => fc.constant(kind)
  const cost = fc.constantFrom(0, 1, 1, 1, 1, 1, 2, 2, 3, 7)
  const nth = fc.nat(8)
  const times = fc.constantFrom(1, 1, 2, 4)
  return fc.oneof(
    { weight: 20, arbitrary: fc.record({ ...common, kind: of("decide"), cost, times }) },
    { weight: 1, arbitrary: fc.record({ ...common, kind: of("peek"), cost }) },
    { weight: 1, arbitrary: fc.record({ ...common, kind: of("takeUpTo"), cost }) },
    { weight: 2, arbitrary: fc.record({ ...common, kind: of("refund"), nth }) },
    { weight: 2, arbitrary: fc.record({ ...common, kind: of("settle"), nth, units: fc.nat(9) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        ...common,
        kind: of("reset"),
        policies: fc.option(fc.subarray(names), { nil: undefined }),
      }),
    },
  )
}

function requests(): fc.Arbitrary<TracedRequest> {
  return fc.record({
    who: fc.constantFrom("ann", "ann", "ann", "bob"),
    method: fc.constantFrom("GET" as const, "GET" as const, "POST" as const),
  })
}

/**
 * Generates steps in time: mostly nothing or part of a window, sometimes to its edge or far beyond it, and rarely back.
 */
function moves({ window }: RateRule): fc.Arbitrary<number> {
  const windowMs = window as number
  return fc.oneof(
    { weight: 12, arbitrary: fc.constant(0) },
    { weight: 12, arbitrary: fc.nat(Math.ceil(windowMs / 20)) },
    { weight: 3, arbitrary: fc.nat(windowMs) },
    { weight: 2, arbitrary: fc.constantFrom(1, windowMs - 1, windowMs, windowMs + 1, 11_000) },
    { weight: 1, arbitrary: fc.nat(windowMs).map((ms) => -ms) },
  )
}
