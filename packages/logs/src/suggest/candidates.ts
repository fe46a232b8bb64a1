import { kneeOf } from "./knee.ts"
import type { PeakCurve } from "./peak-curve.ts"
import type { SuggestCandidate } from "./result.ts"
import { roundLimit } from "./round-limit.ts"

/** A limit, and the number of clients that it would have refused. */
export interface Candidate {
  readonly name: SuggestCandidate["name"]
  readonly limit: number
  /** Clients that the limit would have refused at least once. */
  readonly clients: number
  /** Half-width of the 95% confidence interval of `clients`. 0 if the number is exact. */
  readonly clientsError: number
  /** The smallest peak above the limit; undefined if no client is above it. */
  readonly nextPeak: number | undefined
}

export interface CandidateOptions {
  /**
   * The largest share of clients that may be refused, from 0 to 1. If 0, no client may be refused, however far above
   * the others it is.
   */
  readonly refuseAtMost: number
  /** The largest limit that the algorithm can count. */
  readonly mostUnits: number
  /** Number of clients that make most of the requests, and are therefore not ordinary. */
  readonly outliers: number
}

/** The share of clients that the careful candidate treats as programs or attackers, starting with the largest. */
const TOP_SHARE = 0.0001
const CAREFUL_FACTOR = 1.5

/**
 * A client is far above the others if its peak is at least this multiple of the next lower peak. Peaks below the
 * minimum are never far above the others.
 */
const FAR_FACTOR = 3
const LEAST_FAR_PEAK = 10
/**
 * Maximum number and share of clients that count as far above the others. If there are more such clients, they are a
 * separate kind of client, and not exceptions.
 */
const MOST_FAR = 10
const MOST_FAR_SHARE = 0.01

/**
 * Returns the number of clients that are far above all others. Candidates ignore these clients even if they exceed
 * the share of clients that may be refused. Otherwise, one such client would set the limit for everybody.
 */
export function farClients(curve: PeakCurve): number {
  const { peaks, all } = curve
  const most = Math.min(MOST_FAR, Math.max(1, Math.floor(MOST_FAR_SHARE * all.clients)))
  let far = 0
  for (let at = peaks.length - 1; at > 0; at--) {
    const [below, peak] = [peaks[at - 1], peaks[at]] as [number, number]
    const { clients } = curve.above(below)
    if (clients > most) break
    if (peak >= LEAST_FAR_PEAK && peak >= FAR_FACTOR * below) far = clients
  }
  return far
}

/** Returns how many clients the tight candidate may refuse. */
export function refusableClients(curve: PeakCurve, { refuseAtMost, outliers }: CandidateOptions): number {
  if (refuseAtMost === 0) return 0
  return Math.max(Math.floor(refuseAtMost * curve.all.clients), outliers, farClients(curve))
}

/**
 * Returns the candidates for one window, the highest limit first. Omits balanced if it refuses more clients than
 * tight may, because balanced would then be the lower limit. Omits a limit that the algorithm cannot count.
 */
export function candidatesOf(curve: PeakCurve, options: CandidateOptions): readonly Candidate[] {
  const refusable = refusableClients(curve, options)
  const top = Math.max(options.outliers, farClients(curve), Math.floor(TOP_SHARE * curve.all.clients))
  const corner = kneeOf(curve)
  const knee = corner !== undefined && curve.above(corner).clients <= refusable ? corner : undefined
  const careful = CAREFUL_FACTOR * curve.leastLimit(Math.min(top, refusable))
  const least: readonly (readonly [SuggestCandidate["name"], number | undefined])[] = [
    ["careful", Math.max(careful, knee ?? 0)],
    ["balanced", knee],
    ["tight", curve.leastLimit(refusable)],
  ]
  return least.flatMap(([name, lowest]) => {
    if (lowest === undefined) return []
    const limit = roundLimit(lowest)
    if (limit > options.mostUnits) return []
    const { clients, error } = curve.above(limit)
    return { name, limit, clients, clientsError: error, nextPeak: curve.nextAbove(limit) }
  })
}

/**
 * Returns the candidate that becomes the rule. Prefers balanced, because the log itself shows where ordinary clients
 * end. Without balanced, the rule is careful, or the highest limit that the algorithm can count.
 */
export function activeOf(candidates: readonly Candidate[]): Candidate | undefined {
  return candidates.find(({ name }) => name === "balanced") ?? candidates[0]
}
