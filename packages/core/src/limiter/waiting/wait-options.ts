import { canNeverFit, type RuleCheck } from "../../decision/rule-check.ts"

/** The options of a wait: how long a request waits, and for which rules. */
export interface WaitOptions {
  /** Milliseconds from now; Infinity for no limit. */
  readonly maxWaitMs: number
  /** How many requests may wait for one counter, this one included. */
  readonly maxWaiting: number
  /**
   * False if requests that a leaky bucket delays do not count as waiting, because its room bounds them. Default: true.
   */
  readonly countsDelayed?: boolean
  readonly signal?: AbortSignal | undefined
  /**
   * Called once, as soon as the request has to wait. `leave` ends the wait with a reason. Returns a function that is
   * called when the wait is over.
   */
  onWait?(leave: (reason: unknown) => void): () => void
  /**
   * Whether the request waits for this rule. If not, a refusal by the rule is final and a delay of the rule is not
   * waited for.
   */
  waitsFor(ruleCheck: RuleCheck): boolean
  /**
   * Whether the request stands in line when this rule refuses it. If not, it only waits for the rule's delay. Default:
   * true.
   */
  linesUpFor?(ruleCheck: RuleCheck): boolean
  /**
   * Returns the request's checks under the rules in force. Undefined if the checks are unknown, so that its previous
   * checks apply. The function is absent if the rules never change.
   */
  currentChecks?(): readonly RuleCheck[] | undefined
  /** Called when the request switches to the latest result of `currentChecks`. */
  onRulesChanged?(): void
}

/** Returns the rule checks that take units under a rule that is waited for. */
export function awaitedOf(ruleChecks: readonly RuleCheck[], options: WaitOptions): readonly RuleCheck[] {
  return ruleChecks.filter(
    (ruleCheck) => !ruleCheck.shadow && ruleCheck.cost > 0 && options.waitsFor(ruleCheck),
  )
}

/** True if waiting makes no difference: no rule is waited for, or a rule refuses forever. */
export function isAnsweredAtOnce(ruleChecks: readonly RuleCheck[], awaited: readonly RuleCheck[]): boolean {
  return awaited.length === 0 || ruleChecks.some((ruleCheck) => canNeverFit(ruleCheck) && !ruleCheck.shadow)
}

export function linesUp({ linesUpFor }: WaitOptions, ruleCheck: RuleCheck): boolean {
  return linesUpFor === undefined || linesUpFor(ruleCheck)
}

/**
 * Returns how many requests may wait for the counter of a rule check. 0 if this request does not stand in line for the
 * rule.
 */
export function mostWaiting(options: WaitOptions, ruleCheck: RuleCheck): number {
  return linesUp(options, ruleCheck) ? options.maxWaiting : 0
}
