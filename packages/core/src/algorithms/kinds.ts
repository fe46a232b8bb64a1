import type { Policy } from "../ground/policy.ts"
import type { Algorithm } from "./algorithm.ts"
import { leakyBucket, tokenBucket } from "./bucket.ts"
import { bucketedWindow } from "./bucketed-window.ts"
import { calendarGrant, calendarWindow } from "./calendar-window.ts"
import { fixedWindow } from "./fixed-window.ts"
import { inFlight } from "./in-flight.ts"
import { penalty } from "./penalty.ts"
import { periodicRefill } from "./periodic-refill.ts"
import { slidingLog } from "./sliding-log.ts"
import { slidingWindow } from "./sliding-window.ts"
import { strictWindow } from "./strict-window.ts"

/**
 * The ways a rule can count. Each description ends with the worst case, which is the most units admitted in any
 * window. docs/rules/algorithms.md helps to choose an algorithm, and docs/reference/algorithms.md contains the
 * formulas.
 */
export type AlgorithmName =
  /**
   * Weights the previous window by the share that the sliding window still covers. Admits at most twice the limit in
   * any window, and at most the limit plus 1 in a burst.
   */
  | "sliding-window"
  /** Refuses everything that an exact log would refuse, in constant memory. Admits at most the limit in any window. */
  | "sliding-window-strict"
  /** Stores the time of every admission, to the millisecond. Admits at most the limit in any window. */
  | "sliding-log"
  /** Starts at 0 in each window. Admits at most twice the limit in any window. */
  | "fixed-window"
  /** Refills units evenly and saves them up to the burst. Admits at most the burst plus the limit in any window. */
  | "token-bucket"
  /**
   * Lets requests proceed one by one at an even rate. Units up to the burst wait. Admits at most the burst plus the
   * limit in any window.
   */
  | "leaky-bucket"

/** How a rule counts: an algorithm that its `algorithm` names, or "in-flight" for a rule with `concurrent`. */
export type RuleAlgorithm = AlgorithmName | "in-flight"

/** The members of a rule that only some algorithms read. */
export type AlgorithmMember = "align" | "buckets" | "burst" | "refill"

/** How policies with the same algorithm name are counted. */
interface Counting {
  /** The functions that count, unless `other` applies. */
  readonly algorithm: Algorithm
  /** Other functions. These functions apply if the policy's member has this value or, without `value`, any value. */
  readonly other?: {
    readonly member: AlgorithmMember | "periods"
    readonly value?: string
    readonly algorithm: Algorithm
  }
  readonly members: readonly AlgorithmMember[]
  /**
   * Whether all units of a window, a sub-window or a bucket count alike, so that they can be taken ahead of time or
   * charged later. Absent if each unit has its own time.
   */
  readonly countsByPart?: boolean
}

/** The functions of an algorithm, and its other properties. */
interface AlgorithmRow extends Counting {
  /** A description of how the algorithm counts, for the JSON Schema of rules. */
  readonly summary: string
  /** The most units admitted in any window of length W, with the limit L. The docs state the same bound. */
  readonly worstCase: string
  /** The number of sub-windows for a rule without `buckets`, unless the rule's window has fewer milliseconds. */
  readonly defaultBuckets?: number
  /** The most units that one counter may contain. Absent if the size of a counter does not depend on its units. */
  readonly mostUnits?: number
}

/** All ways in which a rule can count. */
export const ALGORITHMS: Readonly<Record<RuleAlgorithm, AlgorithmRow>> = {
  "sliding-window": {
    summary: "smoothed over two windows",
    worstCase: "2 L",
    algorithm: slidingWindow,
    other: { member: "buckets", algorithm: bucketedWindow },
    countsByPart: true,
    members: ["buckets"],
  },
  "sliding-window-strict": {
    summary: "never more than the limit in any window",
    worstCase: "L",
    algorithm: strictWindow,
    countsByPart: true,
    members: ["buckets"],
    defaultBuckets: 60,
  },
  "sliding-log": {
    summary: "exactly but at a higher cost",
    worstCase: "L",
    algorithm: slidingLog,
    members: [],
    // Each admission is an entry of about 7 bytes, and every decision reads all of them. A thousand entries are 7 kB
    // per client. For higher limits, "sliding-window-strict" has the same worst case and needs only a few bytes.
    mostUnits: 1_000,
  },
  "fixed-window": {
    summary: "starting again in each window",
    worstCase: "2 L",
    algorithm: fixedWindow,
    other: { member: "periods", algorithm: calendarWindow },
    countsByPart: true,
    members: ["align"],
  },
  "token-bucket": {
    summary: "with room for bursts",
    worstCase: "burst + L",
    algorithm: tokenBucket,
    other: { member: "refill", value: "periodic", algorithm: periodicRefill },
    countsByPart: true,
    members: ["burst", "refill"],
  },
  "leaky-bucket": {
    summary: "at an even rate",
    worstCase: "burst + L",
    algorithm: leakyBucket,
    members: ["burst"],
  },
  "in-flight": {
    summary: "while requests are in progress",
    worstCase: "L at a time",
    algorithm: inFlight,
    members: [],
    // With more permits, Redis could not count in place.
    mostUnits: 1_000_000,
  },
}

const COUNTING: ReadonlyMap<string, Counting> = new Map<string, Counting>([
  ...Object.entries(ALGORITHMS),
  // The penalty counts a rule's refusals instead of its units. A rule cannot choose it as its algorithm.
  ["penalty", { algorithm: penalty, members: [] }],
  // Changes the units that are granted in addition to the limit of a calendar period, in the counter of its rule.
  ["grant", { algorithm: calendarGrant, members: [] }],
])

/** The algorithms that a rule can name, in the order of the docs. */
export const ALGORITHM_NAMES = Object.keys(ALGORITHMS).filter(
  (name) => !releases({ algorithm: name }),
) as readonly AlgorithmName[]

/**
 * A policy with a reference to its algorithm, because each decision needs the algorithm. A copy of the members is an
 * ordinary policy, so the algorithm of the original never counts a changed copy.
 */
class CompiledPolicy {
  readonly #algorithm: Algorithm

  constructor(policy: Policy) {
    Object.assign(this, policy)
    this.#algorithm = namedBy(policy)
  }

  static algorithmOf(policy: Policy): Algorithm {
    return #algorithm in policy ? policy.#algorithm : namedBy(policy)
  }
}

/**
 * Returns the policy in a form for which `algorithmOf` is fast. Worthwhile for a policy that is used for many
 * decisions.
 */
export function compilePolicy(policy: Policy): Policy {
  return new CompiledPolicy(policy) as object as Policy
}

/** Returns the algorithm that counts a policy. */
export const algorithmOf: (policy: Policy) => Algorithm = CompiledPolicy.algorithmOf

/** Whether units of the policy's counter can be taken ahead of time or charged later. */
export function countsByPart({ algorithm }: Policy): boolean {
  return COUNTING.get(algorithm)?.countsByPart === true
}

/** Whether a unit of the policy is held until its request ends, and then released. */
export function releases({ algorithm }: Pick<Policy, "algorithm">): boolean {
  // Do not look this up in the table, because each decision asks several times.
  return algorithm === "in-flight"
}

/** Whether the algorithm reads a member that only some algorithms read. */
export function readsMember(algorithm: string, member: AlgorithmMember): boolean {
  return COUNTING.get(algorithm)?.members.includes(member) === true
}

/** Whether the algorithm holds an admitted request until its turn. */
export function holdsAdmitted(name: RuleAlgorithm): boolean {
  return ALGORITHMS[name].algorithm.delayMs !== undefined
}

function namedBy(policy: Policy): Algorithm {
  const { algorithm, other } = COUNTING.get(policy.algorithm) as Counting
  if (other === undefined) return algorithm
  const value = policy[other.member]
  const asksForOther = other.value === undefined ? value !== undefined : value === other.value
  return asksForOther ? other.algorithm : algorithm
}
