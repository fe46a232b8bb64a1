import type { Decision, PolicyCheck, Refusal } from "../../decision/decision.ts"
import { type RuleCheck, ruleChecksNow } from "../../decision/rule-check.ts"
import { type Attempt, startAttempt } from "./attempt.ts"
import type { Ticket, WaitOutcome } from "./line.ts"
import { linesUp, type WaitOptions } from "./wait-options.ts"

/** Refusals that end with time. */
const ENDS: ReadonlySet<Refusal | undefined> = new Set(["quota", "penalty", "blocked"])

let made = 0

export function createTicket(
  ruleChecks: readonly RuleCheck[],
  awaited: readonly RuleCheck[],
  options: WaitOptions,
  nowMs: number,
): Ticket {
  return {
    ruleChecks,
    awaited,
    options,
    deadlineMs: nowMs + options.maxWaitMs,
    number: made++,
    state: "asking",
    turns: [],
    untilMs: 0,
    isOutdated: false,
    isKnown: false,
    isAnnounced: false,
    atEnd: [],
  }
}

/** True if the request is out of line for good. */
export function hasLeft({ state }: Ticket): boolean {
  return state === "leaving" || state === "done"
}

/** True if the request waits, and has not asked the store under its current rules. */
export function isUnasked({ state, attempt }: Ticket): boolean {
  return state === "waiting" && attempt === undefined
}

/**
 * Returns the request's checks under the rules in force. Returns undefined if they are unknown; then its previous checks
 * apply.
 */
export function currentChecks({ options }: Ticket): readonly RuleCheck[] | undefined {
  try {
    return options.currentChecks?.()
  } catch {
    // The function that reads a request is the app's and may throw.
    return undefined
  }
}

/** Begins an attempt with the current policies: what an elastic rule admits above its limit may change each time. */
export function attemptOf(ticket: Ticket): Attempt {
  ticket.isKnown = true
  ticket.attempt = startAttempt(ruleChecksNow(ticket.ruleChecks))
  return ticket.attempt
}

/** Whether the request waits and asks again after this refusal. */
export function waitsOut(ticket: Ticket, { checks }: Decision): boolean {
  return checks.every((check) => {
    const { allowed, shadow, refusal } = check
    if (allowed || shadow) return true
    const ruleCheck = awaitedCheckOf(ticket, check)
    return ENDS.has(refusal) && ruleCheck !== undefined && linesUp(ticket.options, ruleCheck)
  })
}

/** Returns for how many milliseconds the awaited rules delay the request before it goes on. */
export function delayOf(ticket: Ticket, decision: Decision): number {
  if (decision.delayMs === 0) return 0
  if (ticket.isOutdated && !isStillDelayed(ticket, decision)) return 0
  const awaited = decision.checks.filter((check) => awaitedCheckOf(ticket, check) !== undefined)
  return Math.max(0, ...awaited.map(({ delayMs }) => delayMs))
}

/** Whether a rule that delays the granted request is still in force, and waited for. */
export function isStillDelayed(ticket: Ticket, { checks }: Decision): boolean {
  const ruleChecks = currentChecks(ticket)
  if (ruleChecks === undefined) return true
  return checks.some(
    ({ policy, delayMs }) =>
      delayMs > 0 &&
      ruleChecks.some((ruleCheck) => ruleCheck.policy.name === policy && ticket.options.waitsFor(ruleCheck)),
  )
}

function awaitedCheckOf(
  { ruleChecks, options }: Ticket,
  { policy, shadow }: PolicyCheck,
): RuleCheck | undefined {
  if (shadow) return undefined
  return ruleChecks.find((ruleCheck) => ruleCheck.policy.name === policy && options.waitsFor(ruleCheck))
}

/** Calls back when the request has been answered or has gone; immediately if it already has. */
export function whenDone(ticket: Ticket, then: () => void): void {
  if (ticket.state === "done") then()
  else ticket.atEnd.push(then)
}

/** Ends the request's wait. */
export function finish(ticket: Ticket, outcome: WaitOutcome): void {
  ticket.state = "done"
  ticket.outcome = outcome
  for (const then of ticket.atEnd) then()
  ticket.reply?.(outcome)
}

/** Returns the decision, or a promise of it. Throws or rejects with the reason if there is no decision. */
export function resultOf(ticket: Ticket): Decision | Promise<Decision> {
  const { outcome } = ticket
  if (outcome === undefined) {
    return new Promise((resolve, reject) => {
      ticket.reply = (made) => ("error" in made ? reject(made.error) : resolve(made.decision))
    })
  }
  if ("error" in outcome) throw outcome.error
  return outcome.decision
}
