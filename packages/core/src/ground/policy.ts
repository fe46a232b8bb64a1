/** Where a fixed window starts. */
export type Alignment =
  /** At multiples of the window's length since the epoch. For example, a day begins at midnight UTC. */
  | "epoch"
  /** At the client's first request. */
  | "first-hit"

/** How a token bucket fills. */
export type Refill =
  /** Evenly, with each millisecond. */
  | "continuous"
  /** At the start of each window, with the units of a whole window. */
  | "periodic"

/** How a rule decides requests while the shared store is unavailable. */
export type OnStoreFailure =
  /** A limiter in this process decides, with its share of the limit. */
  | "local"
  /** The request is admitted and not counted. */
  | "allow"
  /** The request is refused with status 503. */
  | "deny"

/**
 * A rule's `penalty`, with times in milliseconds. Defines when a client is blocked because it was refused too often.
 */
export interface Penalty {
  /** Number of refusals after which the client is blocked. */
  readonly refusals: number
  /** Time within which the refusals must occur, counted from the first refusal. */
  readonly withinMs: number
  /**
   * Durations of blocks, at most 16. A block starts with the refusal that causes it. If there are several durations,
   * each block moves the client one step up, and each `withinMs` without a refusal moves the client one step down.
   * The step determines how long a block lasts.
   */
  readonly forMs: readonly number[]
}

/** A queue in which adapters hold requests. */
export interface ParsedQueue {
  /** Maximum number of requests of one counter that this process holds. */
  readonly maxWaiting: number
  /** Maximum time in milliseconds for which a request is held. */
  readonly maxWaitMs: number
}

/** A rule's `throttle` with all defaults. Defines how to treat a request that exceeds the limit. */
export type ParsedThrottle =
  /** The request is refused. */
  | { readonly kind: "hard" }
  /** Requests above the limit are admitted up to a percentage of the limit, and marked. */
  | {
      readonly kind: "soft"
      /** Percentage of the limit that is additionally admitted. */
      readonly percent: number
      /** The queue for requests above that percentage. Absent if such requests are refused. */
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
      /** Maximum number of requests of one counter that this process holds. */
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
 * A rule that is compiled for a store. Defines how many units are admitted per window, and how they are counted.
 *
 * `counter` and the partition identify a counter. `counter` is a fingerprint of service, rule name, field, algorithm,
 * window, buckets, alignment and refill. If any of these changes, counts start from zero. If the limit or burst
 * changes, the counts stay.
 */
export interface Policy {
  /** The rule's name. */
  readonly name: string
  /** The fingerprint, a string of bounded length. With the partition, it identifies a counter. */
  readonly counter: string
  /**
   * How units are counted: an `AlgorithmName`, "in-flight" for a rule with `concurrent`, "penalty" or "grant". "penalty"
   * counts a rule's refusals instead of its units, and stores manual blocks by operators. With "grant", a refund grants its
   * units in addition to the limit of the current calendar period, and a charge takes granted units back.
   */
  readonly algorithm: string
  /** Quota units per window, or permits at a time: a non-negative integer (0 only from a limit function). */
  readonly limit: number
  /**
   * Length of the window in whole milliseconds, at least 1. For "in-flight", half of the longest time for which a permit
   * lasts unless it is renewed.
   */
  readonly windowMs: number
  /** Where windows begin. Only for `fixed-window`. */
  readonly align: Alignment
  /**
   * Boundaries of the calendar periods around now, in ascending epoch milliseconds; at least two. Only for
   * `fixed-window`, whose windows are these periods. `windowMs` is the length of the longest one.
   */
  readonly periods?: readonly number[]
  /** The calendar period, for the results of checks. Absent without `periods`. */
  readonly per?: "day" | "week" | "month" | "year"
  /** Units that soft or elastic throttling admits above the limit. Absent: none. */
  readonly extra?: number
  /**
   * Number of sub-windows. Always present for `sliding-window-strict`. If absent, `sliding-window` counts in two
   * windows.
   */
  readonly buckets?: number
  /** Capacity of the bucket. Only for `token-bucket` and `leaky-bucket`. Absent: the limit. */
  readonly burst?: number
  /** How the bucket fills. Only for `token-bucket`. Absent: continuous. */
  readonly refill?: Refill
  /** Whether refused requests count too, up to the ceiling. Absent: false. */
  readonly countRejected?: boolean
  /**
   * When a client is blocked. Only for `penalty`. In such a policy, `limit` is the number of refusals (0: never
   * block) and `windowMs` is the longest time in this object.
   */
  readonly penalty?: Penalty
}

/** Returns the number of units that an unused counter admits. `remaining` counts down from this number. */
export function capacityOf({ limit, burst }: Policy): number {
  // With a limit of 0, the capacity is 0 too, because the bucket never refills.
  return burst === undefined || limit === 0 ? limit : burst
}

/**
 * Returns the capacity plus the units that are admitted above the limit. A request that costs more than this can never
 * be admitted.
 */
export function ceilingOf({ limit, burst, extra = 0 }: Policy): number {
  // Repeats `capacityOf` to save a call, because each decision needs the ceiling several times.
  return (burst === undefined || limit === 0 ? limit : burst) + extra
}

/** How a rule treats a request whose field is missing. */
export type OnMissing =
  /**
   * The request is counted by the client's address, together with other requests from this address that lack the field.
   */
  | "ip"
  /** The rule does not count the request. */
  | "skip"
  /** The rule refuses the request with status 400. */
  | "deny"
  /** The request is counted together with all other requests that lack the field. */
  | "shared"

/** The unit of rules without `counts`. */
export const REQUESTS = "requests"

/** The unit of rules with `concurrent`: permits, which requests hold while they are in progress. */
export const PERMITS = "concurrent-requests"

/** Whether a value is a number of units: a non-negative safe integer. */
export function isUnits(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
