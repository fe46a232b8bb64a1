import { canNeverFit, type RuleCheck } from "../../decision/rule-check.ts"

/** The options of a wait, for example how long a request waits and for which rules. */
export interface WaitOptions {
  /** Maximum wait in milliseconds from now; Infinity for no maximum. */
  readonly maxWaitMs: number
  /** Maximum number of requests that wait for one counter, including this request. */
  readonly maxWaiting: number
  /** Requests of a higher priority go first: a whole number from -1,000 to 1,000. Default: 0. */
  readonly priority?: number
  /**
   * False if requests that a leaky bucket delays do not count as waiting, because the bucket's capacity already
   * limits their number. Default: true.
   */
  readonly countsDelayed?: boolean
  readonly signal?: AbortSignal | undefined
  /**
   * Called once, as soon as the request has to wait. A call of `leave` ends the wait with a reason. The returned
   * function is called when the wait is over.
   */
  onWait?(leave: (reason: unknown) => void): () => void
  /**
   * Whether the request waits for this rule. Otherwise a refusal by the rule is final, and a delay by the rule is
   * ignored.
   */
  waitsFor(ruleCheck: RuleCheck): boolean
  /**
   * Whether the request waits in line when this rule refuses it. Otherwise the request waits only for a delay by the
   * rule. Called only with rules for which `waitsFor` is true. Default: true.
   */
  linesUpFor?(ruleCheck: RuleCheck): boolean
  /**
   * Returns the request's checks under the rules in force. Returns undefined if the checks are unknown; the previous
   * checks then apply. The function is absent if the rules never change.
   */
  currentChecks?(): readonly RuleCheck[] | undefined
  /** Called when the request switches to the latest result of `currentChecks`. */
  onRulesChanged?(): void
}

/** Returns the rule checks that take units under a rule for which the request waits. */
export function awaitedOf(ruleChecks: readonly RuleCheck[], options: WaitOptions): readonly RuleCheck[] {
  return ruleChecks.filter(
    (ruleCheck) => !ruleCheck.shadow && ruleCheck.cost > 0 && options.waitsFor(ruleCheck),
  )
}

/** True if waiting makes no difference, because the request waits for no rule or because a rule refuses it forever. */
export function isAnsweredAtOnce(ruleChecks: readonly RuleCheck[], awaited: readonly RuleCheck[]): boolean {
  return awaited.length === 0 || ruleChecks.some((ruleCheck) => canNeverFit(ruleCheck) && !ruleCheck.shadow)
}

export function linesUp({ linesUpFor }: WaitOptions, ruleCheck: RuleCheck): boolean {
  return linesUpFor === undefined || linesUpFor(ruleCheck)
}

/**
 * Returns the maximum number of requests that wait for the counter of a rule check. Returns 0 if this request does
 * not wait in line for the rule.
 */
export function mostWaiting(options: WaitOptions, ruleCheck: RuleCheck): number {
  return linesUp(options, ruleCheck) ? options.maxWaiting : 0
}
