import type { Decision } from "../../decision/decision.ts"
import type { Ask } from "../../decision/rule-check.ts"
import type { Ticket } from "./ticket.ts"

/** What a ticket asks under the rules in force; undefined where that cannot be said any more: what it came with holds on. */
export function asksAnew({ patience }: Ticket): readonly Ask[] | undefined {
  try {
    return patience.asksAnew?.()
  } catch {
    // What reads a request is the app's.
  }
  return undefined
}

/** Whether, under the rules in force, one that delays what it was granted is still there, and waited for. */
export function isHeldAnew(ticket: Ticket, { checks }: Decision): boolean {
  const asks = asksAnew(ticket)
  if (asks === undefined) return true
  return checks.some(
    ({ policy, delayMs }) =>
      delayMs > 0 && asks.some((ask) => ask.policy.name === policy && ticket.patience.waitsFor(ask)),
  )
}
