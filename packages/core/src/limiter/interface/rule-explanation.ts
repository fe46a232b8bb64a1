import type { CounterKey } from "../../stores/store.ts"

/** The effect of a rule on a request: the counter that it uses, or why it does not apply. */
export interface RuleExplanation {
  /** Name of the rule. */
  readonly policy: string
  /** True if `decide` checks the request under this rule. */
  readonly applies: boolean
  /** True if the rule never refuses. */
  readonly shadow: boolean
  /** The unit that the rule counts. */
  readonly unit: string
  /** Quota units that the request takes from the counter; 0 if the rule does not apply. */
  readonly cost: number
  /** The counter of the request's client. Absent if the rule does not apply, or refuses for a missing field. */
  readonly counter?: CounterKey
  /** The counter of the client's refusals and blocks. Absent if the rule does not check for blocks. */
  readonly penalty?: CounterKey
  /**
   * The reason why the rule refuses the request without counting it: the client is on its deny list, a field is
   * missing, or its limit function has failed before it ever returned a limit ("store-failure").
   */
  readonly refusal?: "denied" | "missing-field" | "store-failure"
  /** The reasons why the rule does not apply. Empty if the rule applies. */
  readonly mismatches: readonly Mismatch[]
}

/** A reason why a rule does not apply to a request. */
export interface Mismatch {
  /**
   * The member of the rule that excludes the request. Instead of a member:
   * - "preflight": the request is a CORS preflight, which only rules for OPTIONS count;
   * - "onlyFields": the request's `onlyFields` lack a field that the rule counts by;
   * - "cannotRelease": nobody says when the request has ended, so a rule with `concurrent` does not apply.
   */
  readonly member:
    | "match.methods"
    | "match.path"
    | "match.fields"
    | "match.when"
    | "allow"
    | "onMissing"
    | "limit"
    | "preflight"
    | "onlyFields"
    | "cannotRelease"
  /** The field that was compared or is missing. Absent if the member does not read a field. */
  readonly field?: string
  /** The field's value in the request. Absent if the request lacks the field. */
  readonly value?: string
}
