import type { Policy } from "../ground/policy.ts"
import type { Algorithm } from "./algorithm.ts"
import { leakyBucket, tokenBucket } from "./bucket.ts"
import { bucketedWindow } from "./bucketed-window.ts"
import { fixedWindow } from "./fixed-window.ts"
import { penalty } from "./penalty.ts"
import { periodicRefill } from "./periodic-refill.ts"
import { slidingLog } from "./sliding-log.ts"
import { slidingWindow } from "./sliding-window.ts"
import { strictWindow } from "./strict-window.ts"

/**
 * How a rule counts, and the most that it admits in any window: its worst case. docs/guides/choosing.md helps to choose,
 * docs/reference/algorithms.md has the formulas.
 */
export type AlgorithmName =
  /** The window before counts by the share of it that is still in reach. At most twice the limit; the limit and 1 in a burst. */
  | "sliding-window"
  /** What an exact log would refuse is refused, in constant memory. At most the limit. */
  | "sliding-window-strict"
  /** Every entry is kept, to the millisecond. At most the limit. */
  | "sliding-log"
  /** Each window begins anew. At most twice the limit. */
  | "fixed-window"
  /** Units come back evenly, and are saved up to the burst. At most burst and limit together. */
  | "token-bucket"
  /** Requests go on one by one, evenly; as many as the burst wait. */
  | "leaky-bucket"

/** A kind of counter. */
interface Kind {
  readonly algorithm: Algorithm
  /** The name of its script in stores/redis/scripts/script-input.ts. Without one, the Redis store refuses to count by it. */
  readonly script?: string
}

/** The members of a rule that some algorithms read and the others do not. */
export type AlgorithmMember = "align" | "buckets" | "burst" | "refill"

/** How policies of one name are counted. */
interface Counting {
  /** Its kind of counter, where the members of the policy do not ask for another one. */
  readonly kind: Kind
  /** Another kind, if a member asks for it: any value of the member, or the one given here. */
  readonly other?: { readonly member: AlgorithmMember; readonly value?: string; readonly kind: Kind }
  readonly members: readonly AlgorithmMember[]
}

/** What the suite knows of an algorithm beside its functions. */
interface AlgorithmRow extends Counting {
  /** How it counts, for the JSON Schema of rules. */
  readonly summary: string
  /** The most units in any window of length W, with the limit L. The documents say the same. */
  readonly worstCase: string
  /** Sub-windows of a rule that does not say how many, unless its window has fewer milliseconds. */
  readonly defaultBuckets?: number
  /** The most units that one counter may hold. Absent where a counter takes the same space for any number of them. */
  readonly mostUnits?: number
}

/** Every algorithm that a rule can name. */
export const ALGORITHMS: Readonly<Record<AlgorithmName, AlgorithmRow>> = {
  "sliding-window": {
    summary: "by two windows",
    worstCase: "2 L",
    kind: { algorithm: slidingWindow, script: "sliding" },
    other: { member: "buckets", kind: { algorithm: bucketedWindow, script: "sub-windows" } },
    members: ["buckets"],
  },
  "sliding-window-strict": {
    summary: "never more than the limit in any window",
    worstCase: "L",
    kind: { algorithm: strictWindow, script: "strict" },
    members: ["buckets"],
    defaultBuckets: 60,
  },
  "sliding-log": {
    summary: "exactly and dearer",
    worstCase: "L",
    kind: { algorithm: slidingLog, script: "log" },
    members: [],
    // Each admission is an entry of some 7 bytes that every decision reads: a thousand are 7 kB for each client, and beyond
    // that "sliding-window-strict" keeps the same bound in a few bytes.
    mostUnits: 1_000,
  },
  "fixed-window": {
    summary: "anew in each window",
    worstCase: "2 L",
    kind: { algorithm: fixedWindow, script: "fixed" },
    other: { member: "align", value: "first-hit", kind: { algorithm: fixedWindow, script: "first-hit" } },
    members: ["align"],
  },
  "token-bucket": {
    summary: "with room for bursts",
    worstCase: "burst + L",
    kind: { algorithm: tokenBucket, script: "level" },
    other: { member: "refill", value: "periodic", kind: { algorithm: periodicRefill, script: "periodic" } },
    members: ["burst", "refill"],
  },
  "leaky-bucket": {
    summary: "at an even rate",
    worstCase: "burst + L",
    kind: { algorithm: leakyBucket, script: "level" },
    members: ["burst"],
  },
}

const COUNTING: ReadonlyMap<string, Counting> = new Map<string, Counting>([
  ...Object.entries(ALGORITHMS),
  // Counts a rule's refusals instead of its units. No rule names it.
  ["penalty", { kind: { algorithm: penalty, script: "penalty" }, members: [] }],
])

/** The names of all algorithms, in the order in which documents tell of them. */
export const ALGORITHM_NAMES = Object.keys(ALGORITHMS) as readonly AlgorithmName[]

/** The algorithm that a policy is counted by. */
export function algorithmOf(policy: Policy): Algorithm {
  return (kindOf(policy) as Kind).algorithm
}

/** Returns the name of the script that counts a policy in Redis; undefined if there is none. */
export function scriptOf(policy: Policy): string | undefined {
  return kindOf(policy)?.script
}

/** Returns whether the algorithm reads a member that not all algorithms read. */
export function readsMember(algorithm: string, member: AlgorithmMember): boolean {
  return COUNTING.get(algorithm)?.members.includes(member) === true
}

/** Returns whether the algorithm holds a request that it has admitted until its turn. */
export function holdsAdmitted(name: AlgorithmName): boolean {
  return ALGORITHMS[name].kind.algorithm.delayMs !== undefined
}

function kindOf(policy: Policy): Kind | undefined {
  const counting = COUNTING.get(policy.algorithm)
  const other = counting?.other
  if (other === undefined) return counting?.kind
  const value = policy[other.member]
  return value === undefined || value !== (other.value ?? value) ? counting?.kind : other.kind
}
