import type { Decision, DecisionCall, LimiterEvents, PolicyCheck, Refusal } from "@sluice/core"
import type { MaybePromise } from "@sluice/core/kit"

/** The record of one decision, which contains only plain JSON values. The record does not contain the request. */
export interface RecordedDecision {
  /**
   * The id of the record: an id of the recorder, "-", and the number of the record. The numbers of a recorder have no gaps,
   * so a repeated number is a duplicate, and a missing one is a lost record.
   */
  readonly id: string
  /** The time of the decision, in epoch milliseconds. */
  readonly timeMs: number
  /** The service of the limiter. */
  readonly service: string
  /** The kind of the record. */
  readonly kind: "decision"
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

/** The record of a later change to the units of clients. */
export interface RecordedChange {
  /** The id of the record, as for a decision. */
  readonly id: string
  /** The time of the change, in epoch milliseconds. */
  readonly timeMs: number
  /** The service of the limiter. */
  readonly service: string
  /**
   * "correction" for the units of a decision that were refunded or charged, by `settle` for example. "grant" for units that
   * `grant` has added to the limit of a period.
   */
  readonly kind: "correction" | "grant"
  /** Whether the corrected units were taken without the shared store. */
  readonly degraded: boolean
  /** What changes under each rule. */
  readonly checks: readonly RecordedUnits[]
}

/**
 * The units of a client under one rule. The sum of `taken` over all records of a period is what the client has used.
 */
export interface RecordedUnits {
  /** Name of the rule. */
  readonly policy: string
  /**
   * The client that the rule counts: the value of the rule's field, which may be personal data, or a hash. "" means
   * the whole service.
   */
  readonly partition: string
  /**
   * Units that were taken: 0 if the request was refused, or if this is a shadow rule that would have refused it. Negative
   * for units that were given back.
   */
  readonly taken: number
  /** Units that the grant added to the limit of the period, or took back if negative. Only in a record of a grant. */
  readonly added?: number
  /** The beginning of the rule's period in epoch milliseconds. Absent for a rule without `per`. */
  readonly startMs?: number
  /** The end of this period. */
  readonly endMs?: number
}

/** The part of a decision's record that describes one rule. */
export interface RecordedCheck extends RecordedUnits {
  /** The unit that the rule counts. Absent if the rule counts requests. */
  readonly unit?: string
  /** Units that the request needed under this rule. */
  readonly cost: number
  /** Whether this rule alone would admit the request. */
  readonly allowed: boolean
  /** Quota units per window, including `granted`. */
  readonly limit: number
  /** Units that had been granted for the period when the request was decided. Absent if there were none. */
  readonly granted?: number
  /** Units that were left under this rule. Absent if the store did not read the rule's counter. */
  readonly remaining?: number
  /** Whether this is a shadow rule, which never refuses. */
  readonly shadow: boolean
}

/**
 * Writes a batch of records, in the order of the decisions. The next batch waits until the sink's promise has
 * settled. If the sink throws or rejects, the batch counts as lost and is not written again.
 */
export type DecisionSink = (records: readonly SinkRecord[]) => MaybePromise<void>

/** The corrections in the event `corrected` of a limiter. */
export type Refunds = LimiterEvents<unknown>["corrected"][0]

/** The members that all records have. */
export type RecordHead = Pick<RecordedDecision, "id" | "timeMs" | "service">

/** A record that a sink receives. */
export type SinkRecord = RecordedDecision | RecordedChange

/** Returns the record of a decision. */
export function recordOf(
  decision: Decision,
  counters: DecisionCall["counters"],
  base: RecordHead,
): RecordedDecision {
  const { allowed, refusal, degraded, policy, checks } = decision
  return {
    ...base,
    kind: "decision",
    allowed,
    ...(refusal !== undefined && { refusal }),
    degraded,
    policy,
    checks: checks.map((check) => recordedCheck(check, decision, counters, base.timeMs)),
  }
}

/**
 * Returns what refunds change at a time. Leaves out units of a calendar period that has ended: the store no longer corrects
 * them, and an invoice may have been sent.
 */
export function changesOf(refunds: Refunds, timeMs: number): readonly RecordedUnits[] {
  return refunds.flatMap(({ policy, partition, units, after }) => {
    const period = periodOf(policy, after.startMs)
    const isOver = period.endMs !== undefined && timeMs >= period.endMs
    return isOver ? [] : [{ policy: policy.name, partition, taken: -units, ...period }]
  })
}

/** Returns what a grant changes at a time. */
export function grantsOf(
  units: number,
  counters: DecisionCall["counters"],
  timeMs: number,
): readonly RecordedUnits[] {
  return counters.map(({ policy, partition }) => {
    return { policy: policy.name, partition, taken: 0, added: units, ...periodOf(policy, timeMs) }
  })
}

function recordedCheck(
  { policy, unit, cost, allowed, taken, limit, granted, remaining, shadow, counts }: PolicyCheck,
  decision: Decision,
  counters: DecisionCall["counters"],
  timeMs: number,
): RecordedCheck {
  const counter = counters.find((each) => each.policy.name === policy)
  return {
    policy,
    partition: counter?.partition ?? "",
    ...(unit !== "requests" && { unit }),
    cost,
    taken: taken ?? (decision.allowed && allowed ? cost : 0),
    ...(counter !== undefined && periodOf(counter.policy, counts?.startMs ?? timeMs)),
    allowed,
    limit,
    ...(granted !== undefined && { granted }),
    ...(remaining !== undefined && { remaining }),
    shadow,
  }
}

/** Returns the calendar period of the policy that contains a time. Empty for other policies. */
function periodOf(
  { periods }: Refunds[number]["policy"],
  ms: number,
): Pick<RecordedUnits, "startMs" | "endMs"> {
  const startMs = periods?.findLast((boundaryMs) => boundaryMs <= ms)
  const endMs = periods?.find((boundaryMs) => boundaryMs > ms)
  return startMs === undefined || endMs === undefined ? {} : { startMs, endMs }
}
