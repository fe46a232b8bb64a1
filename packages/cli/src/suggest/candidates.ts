import { kneeOf } from "./knee.ts"
import type { PeakCurve } from "./peak-curve.ts"
import { roundLimit } from "./round-limit.ts"

export type CandidateName = "careful" | "balanced" | "tight"

/** A limit with what it would have done. */
export interface Candidate {
  readonly name: CandidateName
  readonly limit: number
  /** Clients that the limit would have refused at least once. */
  readonly clients: number
  /** Half-width of the 95% confidence interval of `clients`. 0 if it is exact. */
  readonly clientsError: number
  /** The smallest peak above the limit; undefined if no client is above it. */
  readonly nextPeak: number | undefined
}

export interface CandidateOptions {
  /** The largest share of clients that may be refused, from 0 to 1. */
  readonly refuseAtMost: number
  /** The largest limit that the algorithm can count. */
  readonly mostUnits: number
  /** Number of clients that make most of the requests, and so are not ordinary ones. */
  readonly outliers: number
}

/** The share of clients, from the top, that the careful candidate takes for programs or attackers. */
const TOP_SHARE = 0.0001
const CAREFUL_FACTOR = 1.5

/** Returns the candidates for one window. Leaves out a limit that the algorithm cannot count. */
export function candidatesOf(
  curve: PeakCurve,
  { refuseAtMost, mostUnits, outliers }: CandidateOptions,
): readonly Candidate[] {
  const all = curve.all.clients
  const knee = kneeOf(curve)
  const least: readonly (readonly [CandidateName, number | undefined])[] = [
    ["careful", CAREFUL_FACTOR * curve.leastLimit(Math.max(outliers, Math.floor(TOP_SHARE * all)))],
    ["balanced", knee],
    ["tight", curve.leastLimit(Math.floor(refuseAtMost * all))],
  ]
  return least.flatMap(([name, lowest]) => {
    if (lowest === undefined) return []
    const limit = roundLimit(lowest)
    if (limit > mostUnits) return []
    const { clients, error } = curve.above(limit)
    return { name, limit, clients, clientsError: error, nextPeak: curve.nextAbove(limit) }
  })
}

/**
 * Returns the candidate that becomes the rule: balanced, because the log itself shows where ordinary clients end. If
 * there is no knee, or if the limit of balanced refuses more than `refuseAtMost`, the rule is careful, which refuses
 * hardly any client. For a login the rule is then tight, because clients far above the others guess passwords. If the
 * algorithm cannot count that limit, the rule is the candidate with the largest limit.
 */
export function activeOf(
  candidates: readonly Candidate[],
  curve: PeakCurve,
  { refuseAtMost }: CandidateOptions,
  isLogin: boolean,
): Candidate | undefined {
  const named = (name: CandidateName): Candidate | undefined => candidates.find((each) => each.name === name)
  const balanced = named("balanced")
  if (balanced !== undefined && balanced.clients <= refuseAtMost * curve.all.clients) return balanced
  const largest = [...candidates].sort((one, other) => other.limit - one.limit)[0]
  return named(isLogin ? "tight" : "careful") ?? largest
}
