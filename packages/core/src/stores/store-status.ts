/**
 * The status that a store reports, for metrics and warnings. Every member is optional. A store may report more members
 * than these, which Sluice ignores.
 */
export interface StoreStatus {
  /**
   * Number of servers whose circuit breaker is open, 0 if all servers respond. A limiter has recovered only when it is
   * 0 again.
   */
  readonly openBreakers?: number
  /**
   * Durations of the last replies in milliseconds, in any order, including replies after the deadline. Absent: the
   * limiter measures the replies of a store that returns promises.
   */
  readonly recentRoundTripsMs?: readonly number[]
  /** Counts of the units that the store holds in leases, as `leasedStore` does. */
  readonly leases?: LeaseCounts
  /** The charges to other data centers, by the name of the data center, such as those of `mirroredStore`. */
  readonly mirrors?: Readonly<Record<string, ChargeCounts>>
  /** The charges to the shared counters, such as those of `writeBackStore`. */
  readonly writeBack?: ChargeCounts
}

/**
 * Counts of the units that a store holds in leases, and of the outcome of all leased units since the store was created.
 */
export interface LeaseCounts {
  /** Units that are held now: they are booked in the shared counters, and no request has used them yet. */
  readonly held: number
  /** Number of counters that are held off now: after a refusal, the shared counter is not asked for a while. */
  readonly heldOff: number
  /** Units that requests got from leases, without asking the shared counters. */
  readonly granted: number
  /** Units that were booked in the shared counters ahead of time. */
  readonly booked: number
  /** Held units that were given back to the shared counters. */
  readonly returned: number
  /** Held units that could not be given back. The held units stay taken until their window passes. */
  readonly lost: number
}

/** The state of the charges of a store to other counters. */
export interface ChargeCounts {
  /** Units that were not confirmed since the store was created. Some of them may have been counted nevertheless. */
  readonly lost: number
  /** Milliseconds from the first to the last of the latest charges, if all of these failed. 0 if the last was confirmed. */
  readonly failingMs: number
}
