/**
 * The status that a store reports, for metrics and warnings. Every member is optional. A store may report more members
 * than these, which Sluice ignores.
 */
export interface StoreStatus {
  /**
   * Number of servers whose circuit breaker is open. 0 if all servers respond. A limiter has recovered only when this
   * number is 0 again.
   */
  readonly openBreakers?: number
  /**
   * Durations of the latest round trips in milliseconds, in any order, including replies after the deadline. If
   * absent, the limiter measures the promises that the store returns.
   */
  readonly recentRoundTripsMs?: readonly number[]
  /** Counts of the units that the store holds in leases. Reported by `leasedStore`, for example. */
  readonly leases?: LeaseCounts
  /** The charges to other data centers, by the name of the data center. Reported by `mirroredStore`, for example. */
  readonly mirrors?: Readonly<Record<string, ChargeCounts>>
  /** The charges to the shared counters. Reported by `writeBackStore`, for example. */
  readonly writeBack?: ChargeCounts
}

/**
 * Counts of the units that a store holds in leases, and of the outcome of all leased units since the store was created.
 */
export interface LeaseCounts {
  /** Units that the store holds now. The units are taken from the shared counters, but no request has used them yet. */
  readonly held: number
  /**
   * Number of counters that are held off now. After a refusal, the store does not call the shared counter for a
   * while.
   */
  readonly heldOff: number
  /** Units that requests took from leases, without a call to the shared counters. */
  readonly granted: number
  /** Units that were taken from the shared counters ahead of time. */
  readonly booked: number
  /** Held units that were refunded to the shared counters. */
  readonly returned: number
  /** Held units that could not be refunded. These units stay taken until their window passes. */
  readonly lost: number
}

/** The state of the charges that a store makes to other counters. */
export interface ChargeCounts {
  /** Units that were not confirmed since the store was created. Some of them may have been counted nevertheless. */
  readonly lost: number
  /**
   * Milliseconds from the first to the latest charge of an unbroken row of failed charges. 0 if the latest charge was
   * confirmed.
   */
  readonly failingMs: number
}
