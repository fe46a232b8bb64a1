/** Where a fixed window starts. */
export type Alignment =
  /** At multiples of its length since the epoch: a day begins at midnight UTC. */
  | "epoch"
  /** At the client's first request. */
  | "first-hit"

/** How a token bucket fills. */
export type Refill =
  /** A little with each millisecond. */
  | "continuous"
  /** With a whole window's units, where a window begins. */
  | "periodic"

/** What is decided when the shared store is gone. */
export type OnStoreFailure =
  /** By a limiter in this process alone, with its share of the limit. */
  | "local"
  /** Admitted, uncounted. */
  | "allow"
  /** Refused, with status 503. */
  | "deny"

/** When a client is blocked for having been refused too often: a rule's `penalty`, its times in milliseconds. */
export interface Penalty {
  /** So many refusals block it. */
  readonly refusals: number
  /** Within this time from the first of them. */
  readonly withinMs: number
  /** For so long, from the refusal that reached the number. */
  readonly forMs: number
}

/** What becomes of a request that does not fit into the limit: a rule's `throttle` with every default filled in. */
export type ParsedThrottle =
  /** It is refused. */
  | { readonly kind: "hard" }
  /** Some are admitted above the limit, and marked. */
  | {
      readonly kind: "soft"
      /** Of the limit, admitted above it. */
      readonly percent: number
    }
  /** It is admitted, and marked, while there is capacity to spare. */
  | {
      readonly kind: "elastic"
      /** Units that are admitted in all. Absent where there is no ceiling. */
      readonly ceiling?: number
      /** Whether there is capacity to spare. Absent where the event loop of this process decides. */
      readonly signal?: () => boolean
    }
  /** It is held until it fits. */
  | {
      readonly kind: "queue"
      /** Requests of one counter that are held in this process, at most. */
      readonly maxWaiting: number
      /** Milliseconds that one is held, at most. */
      readonly maxWaitMs: number
    }

/**
 * A rule compiled to what a store needs: how many units, in which window, counted how.
 *
 * `counter` identifies the counter beside the partition. It is a fingerprint of service, rule name, field, algorithm,
 * window, buckets, alignment and refill: a change of any of these starts new counts. A change of limit or burst keeps them.
 */
export interface Policy {
  /** The rule's name. */
  readonly name: string
  /** The fingerprint, bounded text: with the partition it names a counter. */
  readonly counter: string
  /**
   * How it is counted: an `AlgorithmName`, or "penalty", which no rule names. That one counts a rule's refusals instead of its
   * units, and holds blocks by hand.
   */
  readonly algorithm: string
  /** Quota units per window: an integer, 0 and up (0 only from a limit function). */
  readonly limit: number
  /** Length of the window in whole milliseconds, at least 1. */
  readonly windowMs: number
  /** Where windows begin. Only for `fixed-window`. */
  readonly align: Alignment
  /** Units that are admitted above the limit, by soft or elastic throttling. Absent is none. */
  readonly extra?: number
  /** Sub-windows: `sliding-window-strict` always has them, `sliding-window` where it is not to have two windows. */
  readonly buckets?: number
  /** Units that a bucket holds: `token-bucket` and `leaky-bucket` only. Absent is the limit. */
  readonly burst?: number
  /** How it fills. Only for `token-bucket`. Absent is continuous. */
  readonly refill?: Refill
  /** Whether requests that it refuses count too, up to the ceiling. Absent is no. */
  readonly countRejected?: boolean
  /** When a client is blocked. Only for `penalty`, whose `limit` is the refusals (0: never) and whose `windowMs` is the longer of the two times. */
  readonly penalty?: Penalty
}

/** Units that fit when nothing has been taken: what `remaining` counts down from. */
export function capacityOf({ limit, burst }: Policy): number {
  // Nothing flows in or out of a bucket with a limit of 0.
  return burst === undefined || limit === 0 ? limit : burst
}

/** The same with what is admitted above the limit. No request may cost more. */
export function ceilingOf({ limit, burst, extra = 0 }: Policy): number {
  // As `capacityOf`, without another call: each decision asks several times.
  return (burst === undefined || limit === 0 ? limit : burst) + extra
}

/** Whether the check's refusal, or the refusal of the check before it, may be counted. The store then reads every counter. */
export function countsRefusals({
  policy,
  shadow,
}: {
  readonly policy: Policy
  readonly shadow: boolean
}): boolean {
  return !shadow && (policy.countRejected === true || policy.algorithm === "penalty")
}

/** What becomes of a request whose field is missing. */
export type OnMissing =
  /** It is counted by the client's address, together with others of that address that lack the field. */
  | "ip"
  /** The rule does not count it. */
  | "skip"
  /** The rule refuses it, with status 400. */
  | "deny"
  /** It is counted together with all others that lack the field. */
  | "shared"

/** Whether a value is a number of units: a whole number from 0 up. */
export function isUnits(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
