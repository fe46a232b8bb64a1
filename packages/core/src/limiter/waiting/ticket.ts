import type { Decision, PolicyCheck, Refusal } from "../../decision/decision.ts"
import { type RuleCheck, ruleChecksNow } from "../../decision/rule-check.ts"
import { Attempt } from "./attempt.ts"
import type { Line, Turn, Waiter } from "./line.ts"
import type { Place } from "./queue.ts"
import { linesUp, type WaitOptions } from "./wait-options.ts"

/** Refusals that end with time. */
const ENDS: ReadonlySet<Refusal> = new Set(["quota", "penalty", "blocked"])

/**
 * The state of a request in the waiting room.
 *
 * - waiting: stands in one line
 * - asking: asks the store
 * - held: was granted, and is held until its turn
 * - leaving: out of line, while its last answer is pending
 * - done: answered, or gone
 */
export type Step = "waiting" | "asking" | "held" | "leaving" | "done"

type WaitOutcome = { readonly decision: Decision } | { readonly error: unknown }

interface Settle {
  resolve(decision: Decision): void
  reject(error: unknown): void
}

let made = 0

/** A request in the waiting room. */
export class Ticket implements Waiter {
  ruleChecks: readonly RuleCheck[]
  /** The rule checks that it waits for. */
  awaited: readonly RuleCheck[]
  readonly options: WaitOptions
  /** The end of its wait, by the limiter's clock. */
  readonly deadlineMs: number
  /** The order in which requests arrive. */
  readonly number: number = made++
  step: Step = "asking"
  /** While it waits: the rule check whose counter it waits for, the line of that counter, and its place there. */
  ruleCheck: RuleCheck | undefined
  line: Line<Ticket> | undefined
  place: Place<Ticket> | undefined
  /** The line in which it was the first, and was refused. */
  sleptIn: Line<Ticket> | undefined
  /** Its grant, until it goes on. */
  granted: Decision | undefined
  /** Its turns while it is held: one for each of its counters. */
  turns: readonly Place<Turn<Ticket>>[] = []
  /** While it is held: the end of the hold. */
  untilMs = 0
  /** Whether rules have changed while it is being decided. If it then has to wait, the new rules apply. */
  isOutdated = false
  /** Its latest attempt; undefined if it has not asked under its current rules. */
  attempt: Attempt | undefined
  /** Whether it has stood in a line or asked the store before. */
  isKnown = false
  #outcome: WaitOutcome | undefined
  #settle: Settle | undefined
  #isWaiting = false
  readonly #atEnd: (() => void)[] = []

  constructor(
    ruleChecks: readonly RuleCheck[],
    awaited: readonly RuleCheck[],
    options: WaitOptions,
    nowMs: number,
  ) {
    this.ruleChecks = ruleChecks
    this.awaited = awaited
    this.options = options
    this.deadlineMs = nowMs + options.maxWaitMs
  }

  /** Whether it is out of line for good. */
  get hasLeft(): boolean {
    return this.step === "leaving" || this.step === "done"
  }

  /**
   * Returns its checks under the rules in force. Returns undefined if they are unknown; then its previous checks apply.
   */
  currentChecks(): readonly RuleCheck[] | undefined {
    try {
      return this.options.currentChecks?.()
    } catch {
      // The function that reads a request is the app's and may throw.
      return undefined
    }
  }

  /** Switches to other rules. */
  renew(ruleChecks: readonly RuleCheck[], awaited: readonly RuleCheck[]): void {
    this.ruleChecks = ruleChecks
    this.awaited = awaited
    this.attempt = undefined
    this.options.onRulesChanged?.()
  }

  /** Begins an attempt with the current policies: what an elastic rule admits above its limit may change each time. */
  startAttempt(): Attempt {
    this.isKnown = true
    this.attempt = new Attempt(ruleChecksNow(this.ruleChecks))
    return this.attempt
  }

  /** Whether it waits and asks again after this refusal. */
  waitsOut({ checks }: Decision): boolean {
    return checks.every((check) => {
      const { allowed, shadow, refusal } = check
      if (allowed || shadow) return true
      const ruleCheck = this.#awaitedCheckOf(check)
      return (
        refusal !== undefined &&
        ENDS.has(refusal) &&
        ruleCheck !== undefined &&
        linesUp(this.options, ruleCheck)
      )
    })
  }

  /** Returns for how many milliseconds the awaited rules hold it before it goes on. */
  delayOf(decision: Decision): number {
    if (decision.delayMs === 0) return 0
    if (this.isOutdated && !this.isStillDelayed(decision)) return 0
    const awaited = decision.checks.filter((check) => this.#awaitedCheckOf(check) !== undefined)
    return Math.max(0, ...awaited.map(({ delayMs }) => delayMs))
  }

  /** Whether a rule that delays the granted request is still in force, and waited for. */
  isStillDelayed({ checks }: Decision): boolean {
    const ruleChecks = this.currentChecks()
    if (ruleChecks === undefined) return true
    return checks.some(
      ({ policy, delayMs }) =>
        delayMs > 0 &&
        ruleChecks.some((ruleCheck) => ruleCheck.policy.name === policy && this.options.waitsFor(ruleCheck)),
    )
  }

  #awaitedCheckOf({ policy, shadow }: PolicyCheck): RuleCheck | undefined {
    if (shadow) return undefined
    return this.ruleChecks.find(
      (ruleCheck) => ruleCheck.policy.name === policy && this.options.waitsFor(ruleCheck),
    )
  }

  /** Calls `onWait`, the first time only. */
  waits(leave: (reason: unknown) => void): void {
    if (this.#isWaiting || this.options.onWait === undefined) return
    this.#isWaiting = true
    this.atEnd(this.options.onWait(leave))
  }

  /** Calls back when it has been answered or has gone; at once if it already has. */
  atEnd(then: () => void): void {
    if (this.step === "done") then()
    else this.#atEnd.push(then)
  }

  end(outcome: WaitOutcome): void {
    this.step = "done"
    for (const then of this.#atEnd) then()
    if (this.#settle === undefined) this.#outcome = outcome
    else if ("error" in outcome) this.#settle.reject(outcome.error)
    else this.#settle.resolve(outcome.decision)
  }

  /** Returns the decision, or a promise of it. Throws or rejects with the reason if there is no decision. */
  result(): Decision | Promise<Decision> {
    const outcome = this.#outcome
    if (outcome === undefined) {
      return new Promise((resolve, reject) => {
        this.#settle = { resolve, reject }
      })
    }
    if ("error" in outcome) throw outcome.error
    return outcome.decision
  }
}
