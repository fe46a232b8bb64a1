/** The event that a client has used a percentage of its limit that the rule's `notify` lists. */
export interface NearLimitEvent {
  /** Name of the rule. */
  readonly policy: string
  /**
   * The client, as the rule counts it: the value of its field, or a hash. "" is the whole service.
   */
  readonly partition: string
  /** The percentage of `notify` that is used: 80. */
  readonly threshold: number
  /** Units in use, at most the limit, or at most the capacity of a bucket. */
  readonly used: number
  /** Units that are left. */
  readonly remaining: number
  /** Quota units per window. */
  readonly limit: number
  /** Milliseconds until all units are available again, if no other request comes. */
  readonly resetAfterMs: number
  /** Whether this is a shadow rule, which never refuses. */
  readonly shadow: boolean
}
