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
}

/** The share of clients, from the top, that the careful candidate takes for programs or attackers. */
const TOP_SHARE = 0.0001
const CAREFUL_FACTOR = 1.5

/** Returns the candidates for one window. Leaves out a limit that the algorithm cannot count. */
export function candidatesOf(
  curve: PeakCurve,
  { refuseAtMost, mostUnits }: CandidateOptions,
): readonly Candidate[] {
  const all = curve.all.clients
  const knee = kneeOf(curve)
  const least: readonly (readonly [CandidateName, number | undefined])[] = [
    ["careful", CAREFUL_FACTOR * curve.leastLimit(Math.floor(TOP_SHARE * all))],
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
 * Returns the candidate that becomes the rule. This is the balanced one, because the log itself shows where ordinary
 * clients end. If there is no knee, or if its limit refuses more than `refuseAtMost`, it is the careful one, because it
 * refuses hardly anybody. For a login it is then the tight one, because clients far above the others guess passwords. If
 * that one is too large for the algorithm, it is the largest one left.
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
