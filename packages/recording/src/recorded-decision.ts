import type { Decision, DecisionCall, PolicyCheck, Refusal } from "@sluice/core"
import type { MaybePromise } from "@sluice/core/kit"

/** The record of one decision, which contains only plain JSON values. The record does not contain the request. */
export interface RecordedDecision {
  /** The time of the decision, in epoch milliseconds. */
  readonly timeMs: number
  /** The service of the limiter. */
  readonly service: string
  /** Whether the request was admitted. */
  readonly allowed: boolean
  /** Why the request was refused; absent if it was admitted. */
  readonly refusal?: Refusal
  /** Whether the decision was made without the shared store. */
  readonly degraded: boolean
  /** Name of the binding rule; "" if no rule applies. */
  readonly policy: string
  /** The result of each rule by itself, including shadow rules. Empty if no rule applies. */
  readonly checks: readonly RecordedCheck[]
}

/** The part of a record that describes one rule. */
export interface RecordedCheck {
  /** Name of the rule. */
  readonly policy: string
  /**
   * The client that the rule counts: the value of the rule's field, which may be personal data, or a hash. "" means
   * the whole service.
   */
  readonly partition: string
  /** The unit that the rule counts. Absent if the rule counts requests. */
  readonly unit?: string
  /**
   * Units that the request needed under this rule. The units were taken if both this rule and the request as a whole
   * were admitted.
   */
  readonly cost: number
  /** Whether this rule alone would admit the request. */
  readonly allowed: boolean
  /** Quota units per window. */
  readonly limit: number
  /** Units that were left under this rule. Absent if the store did not read the rule's counter. */
  readonly remaining?: number
  /** Whether this is a shadow rule, which never refuses. */
  readonly shadow: boolean
}

/**
 * Writes a batch of records, in the order of the decisions. The next batch waits until the sink's promise has
 * settled. If the sink throws or rejects, the batch counts as lost and is not written again.
 */
export type DecisionSink = (records: readonly RecordedDecision[]) => MaybePromise<void>

/** Returns the record of a decision. */
export function recordOf(
  decision: Decision,
  counters: DecisionCall["counters"],
  service: string,
  timeMs: number,
): RecordedDecision {
  const { allowed, refusal, degraded, policy, checks } = decision
  return {
    timeMs,
    service,
    allowed,
    ...(refusal !== undefined && { refusal }),
    degraded,
    policy,
    checks: checks.map((check) => recordedCheck(check, counters)),
  }
}

function recordedCheck(
  { policy, unit, cost, allowed, limit, remaining, shadow }: PolicyCheck,
  counters: DecisionCall["counters"],
): RecordedCheck {
  const { partition = "" } = counters.find((counter) => counter.policy.name === policy) ?? {}
  return {
    policy,
    partition,
    ...(unit !== "requests" && { unit }),
    cost,
    allowed,
    limit,
    ...(remaining !== undefined && { remaining }),
    shadow,
  }
}
