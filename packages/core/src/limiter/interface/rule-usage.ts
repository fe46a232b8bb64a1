/** What a client has used of a rule with `per` in the current period. */
export interface RuleUsage {
  /** Name of the rule. */
  readonly policy: string
  /** The unit that the rule counts. */
  readonly unit: string
  /**
   * The client as the rule counts it: the value of its field, or a hash of the value. "" is the whole service.
   */
  readonly partition: string
  /** The beginning of the period, in epoch milliseconds. */
  readonly startMs: number
  /** The end of the period, which is the beginning of the next one, in epoch milliseconds. */
  readonly endMs: number
  /** Quota units for the period, including granted ones. */
  readonly limit: number
  /** Units that the client was granted for this period only. */
  readonly granted: number
  /** Units that the client has used. */
  readonly used: number
  /** Remaining units. */
  readonly remaining: number
  /** Whether this is a shadow rule, which never refuses. */
  readonly shadow: boolean
}
