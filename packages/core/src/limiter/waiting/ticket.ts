import type { Decision, PolicyCheck, Refusal } from "../../decision/decision.ts"
import { type RuleCheck, ruleChecksNow } from "../../decision/rule-check.ts"
import { type Attempt, startAttempt } from "./attempt.ts"
import type { Ticket, WaitOutcome } from "./line.ts"
import { linesUp, type WaitOptions } from "./wait-options.ts"

/** The refusals that end after some time. */
const ENDS: ReadonlySet<Refusal | undefined> = new Set(["quota", "in-flight", "penalty", "blocked"])

/**
 * More requests than a process ever receives. An arrival within this number, minus a multiple of it for the priority,
 * is an exact integer.
 */
const MOST_ARRIVALS = 2 ** 40

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
    number: made++ - (options.priority ?? 0) * MOST_ARRIVALS,
    state: "asking",
    turns: [],
    untilMs: 0,
    isOutdated: false,
    isKnown: false,
    isAnnounced: false,
    atEnd: [],
  }
}

/** True if the request has finally left its line. */
export function hasLeft({ state }: Ticket): boolean {
  return state === "leaving" || state === "done"
}

/** True if the request waits, and has not called the store under its current rules. */
export function isUnasked({ state, attempt }: Ticket): boolean {
  return state === "waiting" && attempt === undefined
}

/**
 * Returns the request's checks under the rules in force. Returns undefined if these checks are unknown; the previous
 * checks then apply.
 */
export function currentChecks({ options }: Ticket): readonly RuleCheck[] | undefined {
  try {
    return options.currentChecks?.()
  } catch {
    // The app's function that reads the request may throw.
    return undefined
  }
}

/**
 * Begins an attempt with the current policies. The units of an elastic rule above its limit may differ for each attempt,
 * and a request may wait beyond the calendar periods that it knows.
 */
export function attemptOf(ticket: Ticket, nowMs: number): Attempt {
  ticket.isKnown = true
  ticket.attempt = startAttempt(ruleChecksNow(withCurrentPeriods(ticket, nowMs)), ticket.attempt)
  return ticket.attempt
}

/** Returns the request's checks. In those whose calendar period has ended, replaces the policies by current ones. */
function withCurrentPeriods(ticket: Ticket, nowMs: number): readonly RuleCheck[] {
  const { ruleChecks } = ticket
  const hasEnded = ({ policy: { periods } }: RuleCheck) =>
    nowMs >= (periods?.at(-2) ?? Number.POSITIVE_INFINITY)
  if (!ruleChecks.some(hasEnded)) return ruleChecks
  const current = currentChecks(ticket)
  return ruleChecks.map((ruleCheck) => {
    const { counter } = ruleCheck.policy
    const isSame = ({ policy, partition }: RuleCheck) =>
      policy.counter === counter && partition === ruleCheck.partition
    const found = hasEnded(ruleCheck) ? current?.find(isSame) : undefined
    return found === undefined
      ? ruleCheck
      : { ...ruleCheck, policy: found.policy, policyNow: found.policyNow }
  })
}

/** True if the request waits after this refusal, and then calls the store again. */
export function waitsOut(ticket: Ticket, { checks }: Decision): boolean {
  return checks.every((check) => {
    const { allowed, shadow, refusal } = check
    if (allowed || shadow) return true
    const ruleCheck = awaitedCheckOf(ticket, check)
    return ENDS.has(refusal) && ruleCheck !== undefined && linesUp(ticket.options, ruleCheck)
  })
}

/** Returns for how many milliseconds the awaited rules delay the request before it proceeds. */
export function delayOf(ticket: Ticket, decision: Decision): number {
  if (decision.delayMs === 0) return 0
  if (ticket.isOutdated && !isStillDelayed(ticket, decision)) return 0
  const awaited = decision.checks.filter((check) => awaitedCheckOf(ticket, check) !== undefined)
  return Math.max(0, ...awaited.map(({ delayMs }) => delayMs))
}

/** True if a rule that delays the granted request is still in force, and the request still waits for it. */
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

/** Calls `then` when the request's wait has ended; immediately if it has already ended. */
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

/**
 * Returns the decision or a promise of the decision. Throws or rejects with the reason if the wait ends without a
 * decision.
 */
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
