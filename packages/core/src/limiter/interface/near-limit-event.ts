/** The event that a client's used percentage of its limit has reached a threshold in the rule's `notify`. */
export interface NearLimitEvent {
  /** Name of the rule. */
  readonly policy: string
  /** The unit that the rule counts. */
  readonly unit: string
  /**
   * The client as the rule counts it: the value of its field, or a hash of the value. "" is the whole service.
   */
  readonly partition: string
  /** The threshold in `notify` that was reached, such as 80 for 80 %. */
  readonly threshold: number
  /** Units in use, at most the limit, or at most the capacity of a bucket. */
  readonly used: number
  /** Remaining units. */
  readonly remaining: number
  /** Quota units per window, including granted ones. */
  readonly limit: number
  /** Milliseconds until all units are available again, if no other request arrives. */
  readonly resetAfterMs: number
  /** Whether this is a shadow rule, which never refuses. */
  readonly shadow: boolean
}
