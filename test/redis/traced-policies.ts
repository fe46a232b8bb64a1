import fc from "fast-check"
import { ALGORITHMS, type AlgorithmName } from "../../packages/core/src/algorithms/kinds.ts"
import { ceilingOf, type Penalty, type Policy } from "../../packages/core/src/ground/policy.ts"

/** The largest count that Redis stores in packed form: 2^20 - 1. */
export const MOST_PACKED: number = 2 ** 20 - 1
const DAY_MS = 86_400_000
const START_MS = Date.UTC(2024, 0, 1)
const WINDOWS_MS = [10, 1_000, 60_000, DAY_MS, 30 * DAY_MS, 366 * DAY_MS]
const LIMITS = [1, 2, 5, 10, 100, MOST_PACKED, MOST_PACKED + 1]

/** Changes to a policy that do not change its counter. A member that is null does not change the policy. */
const CHANGES = fc.record({
  limit: fc.constantFrom(null, 0, 3, 7, MOST_PACKED),
  burst: fc.constantFrom(null, 1, 9, 30, 1_000),
  extra: fc.constantFrom(null, 0, 2, 40),
  /** The part of a window by which calendar periods begin later. */
  shift: fc.constantFrom(null, 0.1, 0.6),
})

/** Generates one counter, under one policy or two. */
export function tracedPolicies(): fc.Arbitrary<readonly Policy[]> {
  const usual = fc.record({ windowMs: fc.constantFrom(...WINDOWS_MS), limit: fc.constantFrom(...LIMITS) })
  // Buckets of five million units per month count time in whole seconds.
  const monthly = fc.record({
    windowMs: fc.constant(30 * DAY_MS),
    limit: fc.constantFrom(5_000_000, 5_000_017),
  })
  // These counts are so large that their share cannot be computed with one multiplication. Some of these windows are
  // longer than a year.
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
      change: fc.option(CHANGES, { freq: 2 }),
      // One policy may count refusals while the other does not. Both use the same counter.
      countRejected: fc.constantFrom(NONE, NONE, [true, true], [true, false], [false, true]),
    })
    .map(({ amounts, kind, extra, change, countRejected }) => {
      if (isPenalties(kind)) return kind.penalties.map(penaltyOf)
      // Permits last for at most an hour.
      const windowMs =
        kind.algorithm === "in-flight" ? Math.min(amounts.windowMs, 30 * DAY_MS) : amounts.windowMs
      const policy: Policy = {
        name: "trace",
        counter: "",
        align: "epoch",
        ...amounts,
        windowMs,
        ...kind,
        ...periodsOf(amounts, kind),
      }
      const some = extra === null || isVast(policy) ? policy : { ...policy, extra }
      const exact = isVast(some) ? { ...some, ...largestOf(some) } : some
      const other = change === null || isEndless(exact) ? exact : changed(exact, change)
      // Use only one policy if a unit may have other fractions under the other limit. Otherwise reading under one
      // policy would change the value under the other.
      const both = other === exact || isCoarse(exact) || isCoarse(other) ? [exact] : [exact, other]
      return both.map((one, i) => (countRejected[i] === true ? { ...one, countRejected: true } : one))
    })
}

const NONE: readonly boolean[] = []

function changed(
  policy: Policy,
  {
    limit,
    burst,
    extra,
    shift,
  }: { limit: number | null; burst: number | null; extra: number | null; shift: number | null },
): Policy {
  const { algorithm, periods, windowMs } = policy
  const hasBurst = burst !== null && (algorithm === "token-bucket" || algorithm === "leaky-bucket")
  return {
    ...policy,
    ...(limit !== null && { limit }),
    ...(hasBurst && { burst }),
    ...(extra !== null && !isVast(policy) && { extra }),
    ...(periods && shift !== null && { periods: periods.map((ms) => ms + Math.ceil(shift * windowMs)) }),
  }
}

/** The penalties of one counter of refusals. A second penalty simulates a changed rule. */
interface Penalties {
  readonly penalties: readonly Penalty[]
}

function isPenalties(kind: Kind | Penalties): kind is Penalties {
  return "penalties" in kind
}

function penaltyOf(penalty: Penalty): Policy {
  const { refusals, withinMs, forMs } = penalty
  return {
    name: "trace",
    counter: "",
    algorithm: "penalty",
    align: "epoch",
    limit: refusals,
    windowMs: Math.max(withinMs, ...forMs),
    penalty,
  }
}

/** Returns the boundaries of periods of different lengths, if the kind counts by periods. */
function periodsOf({ windowMs }: Pick<Policy, "windowMs">, { periods }: Kind): Partial<Policy> {
  const lengths = [0.5, 1, 0.3, 1, 0.9].map((share) => Math.ceil(share * windowMs))
  const boundary = (at: number) => lengths.slice(0, at).reduce((sum, ms) => sum + ms, START_MS - 3)
  return periods === undefined ? {} : { periods: [0, 1, 2, 3, 4, 5].map(boundary) }
}

type Kind = Pick<Policy, "algorithm"> & Partial<Policy>

/** Generates the members that distinguish one way to count from another. */
function kinds(): fc.Arbitrary<Kind | Penalties> {
  const buckets = fc.constantFrom(2, 3, 7, 12, 60, 360)
  const burst = fc.option(fc.constantFrom(1, 4, 30, 1_000), { nil: undefined })
  const penalty = fc.record({
    refusals: fc.constantFrom(0, 1, 2, 3, 5),
    withinMs: fc.constantFrom(10, 1_000, DAY_MS),
    forMs: fc.array(fc.constantFrom(1, 1_000, 60_000), { minLength: 1, maxLength: 3 }),
  })
  const ofName = <Name extends Policy["algorithm"]>(name: Name) => fc.constant(name)
  return fc.oneof(
    fc.record({ algorithm: ofName("sliding-window") }),
    fc.record({ algorithm: ofName("in-flight") }),
    fc.record({
      algorithm: ofName("fixed-window"),
      align: fc.constantFrom("epoch" as const, "first-hit" as const),
    }),
    fc.record({ algorithm: ofName("fixed-window"), periods: fc.constant([]) }),
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
    fc.record({ penalties: fc.array(penalty, { minLength: 1, maxLength: 2 }) }),
  )
}

function withoutAbsent<Kind extends { readonly burst: number | undefined }>({
  burst,
  ...kind
}: Kind): Omit<Kind, "burst"> & { readonly burst?: number } {
  return burst === undefined ? kind : { ...kind, burst }
}

/** True if the counter contains fractions of units. */
function isLevel({ algorithm, refill }: Policy): boolean {
  return (algorithm === "token-bucket" && refill !== "periodic") || algorithm === "leaky-bucket"
}

function isCoarse(policy: Policy): boolean {
  const most = Math.max(policy.limit, ceilingOf(policy)) + 1
  return isLevel(policy) && most * policy.windowMs > Number.MAX_SAFE_INTEGER
}

/** True if under a small limit, a bucket would take too long to refill for its end to be an exact number. */
function isEndless({ algorithm, limit }: Policy): boolean {
  return (algorithm === "token-bucket" || algorithm === "leaky-bucket") && limit > 2 ** 30
}

function isVast({ limit }: Policy): boolean {
  return limit > 2 ** 32
}

function largestOf(policy: Policy): Partial<Policy> {
  // With this many units in a month, a bucket can still count in fractions of a second.
  if (isLevel(policy)) return { limit: 2 ** 31 + 1, windowMs: 30 * DAY_MS }
  const { mostUnits } = ALGORITHMS[policy.algorithm as AlgorithmName]
  return mostUnits === undefined ? {} : { limit: mostUnits }
}
