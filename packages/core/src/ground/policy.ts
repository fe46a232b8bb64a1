/** Where a fixed window starts. */
export type Alignment =
  /** At multiples of its length since the epoch: a day begins at midnight UTC. */
  | "epoch"
  /** At the client's first request. */
  | "first-hit"

/** How a token bucket fills. */
export type Refill =
  /** Evenly, with each millisecond. */
  | "continuous"
  /** At the start of each window, by the units of a whole window. */
  | "periodic"

/** How requests are decided while the shared store is unavailable. */
export type OnStoreFailure =
  /** A limiter in this process decides, with its share of the limit. */
  | "local"
  /** The request is admitted and not counted. */
  | "allow"
  /** The request is refused with status 503. */
  | "deny"

/** A rule's `penalty`, with times in milliseconds: when a client is blocked because it was refused too often. */
export interface Penalty {
  /** Number of refusals after which the client is blocked. */
  readonly refusals: number
  /** Time in which the refusals must occur, from the first of them. */
  readonly withinMs: number
  /**
   * Lengths of blocks, each from the refusal that caused it: at most 16. With several, each block moves the client one
   * step up, and each `withinMs` without a refusal moves it one step down. A block lasts as long as its step.
   */
  readonly forMs: readonly number[]
}

/** A queue in which adapters hold requests. */
export interface ParsedQueue {
  /** Maximum number of requests of one counter that are held in this process. */
  readonly maxWaiting: number
  /** Maximum time in milliseconds for which a request is held. */
  readonly maxWaitMs: number
}

/** A rule's `throttle` with every default filled in: how to treat a request that does not fit into the limit. */
export type ParsedThrottle =
  /** The request is refused. */
  | { readonly kind: "hard" }
  /** Requests above the limit are admitted up to a percentage of it, and marked. */
  | {
      readonly kind: "soft"
      /** Percentage of the limit that is admitted above it. */
      readonly percent: number
      /** The queue for requests above that limit. Absent if such requests are refused. */
      readonly queue?: ParsedQueue
    }
  /** The request is admitted and marked while there is spare capacity. */
  | {
      readonly kind: "elastic"
      /** Maximum number of units admitted in total. Absent if there is no ceiling. */
      readonly ceiling?: number
      /** Whether there is spare capacity. Absent if the event loop of this process decides. */
      readonly signal?: () => boolean
      /** The queue for requests that are not admitted. Absent if such requests are refused. */
      readonly queue?: ParsedQueue
    }
  /** The request is held until it fits. */
  | {
      readonly kind: "queue"
      /** Maximum number of requests of one counter that are held in this process. */
      readonly maxWaiting: number
      /** Maximum time in milliseconds for which a request is held. */
      readonly maxWaitMs: number
    }

/** Returns the queue in which a throttle holds requests. Returns undefined if the throttle refuses them. */
export function queueOf(throttle: ParsedThrottle): ParsedQueue | undefined {
  if (throttle.kind === "queue") return throttle
  return throttle.kind === "hard" ? undefined : throttle.queue
}

/**
 * A rule compiled for a store: how many units, in which window, and how they are counted.
 *
 * `counter` and the partition identify a counter. `counter` is a fingerprint of service, rule name, field, algorithm,
 * window, buckets, alignment and refill. A change of any of these starts new counts. A change of limit or burst keeps
 * the counts.
 */
export interface Policy {
  /** The rule's name. */
  readonly name: string
  /** The fingerprint, a string of bounded length. With the partition, it identifies a counter. */
  readonly counter: string
  /**
   * How the rule is counted: an `AlgorithmName`, or "penalty", which a rule cannot name. "penalty" counts a rule's
   * refusals instead of its units, and stores blocks that operators set.
   */
  readonly algorithm: string
  /** Quota units per window: a non-negative integer (0 only from a limit function). */
  readonly limit: number
  /** Length of the window in whole milliseconds, at least 1. */
  readonly windowMs: number
  /** Where windows begin. Only for `fixed-window`. */
  readonly align: Alignment
  /** Units that soft or elastic throttling admits above the limit. Absent: none. */
  readonly extra?: number
  /**
   * Number of sub-windows. `sliding-window-strict` always has them; `sliding-window` counts by two windows without it.
   */
  readonly buckets?: number
  /** Capacity of the bucket. Only for `token-bucket` and `leaky-bucket`. Absent: the limit. */
  readonly burst?: number
  /** How the bucket fills. Only for `token-bucket`. Absent: continuous. */
  readonly refill?: Refill
  /** Whether refused requests count too, up to the ceiling. Absent: false. */
  readonly countRejected?: boolean
  /**
   * When a client is blocked. Only for `penalty`. There, `limit` is the number of refusals (0: never block) and
   * `windowMs` is the longest of its times.
   */
  readonly penalty?: Penalty
}

/** Returns the units that fit into an unused counter. `remaining` counts down from this number. */
export function capacityOf({ limit, burst }: Policy): number {
  // Nothing flows in or out of a bucket with a limit of 0.
  return burst === undefined || limit === 0 ? limit : burst
}

/** Returns the capacity plus the units that are admitted above the limit. A request that costs more never fits. */
export function ceilingOf({ limit, burst, extra = 0 }: Policy): number {
  // Repeats `capacityOf` to save a call, because each decision needs the ceiling several times.
  return (burst === undefined || limit === 0 ? limit : burst) + extra
}

/** How a rule treats a request whose field is missing. */
export type OnMissing =
  /** The request is counted by the client's address, with other requests from it that lack the field. */
  | "ip"
  /** The rule does not count the request. */
  | "skip"
  /** The rule refuses the request with status 400. */
  | "deny"
  /** The request is counted together with all others that lack the field. */
  | "shared"

/** Whether a value is a number of units: a non-negative safe integer. */
export function isUnits(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
