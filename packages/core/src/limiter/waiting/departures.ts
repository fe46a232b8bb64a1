import type { Decision } from "../../decision/decision.ts"
import { countRefusals } from "../../decision/penalties.ts"
import type { Ask } from "../../decision/rule-check.ts"
import type { Alarm } from "./alarm.ts"
import { isHeldAnew } from "./anew.ts"
import { type Deciding, whenDecided } from "./deciding.ts"
import type { Lines } from "./lines.ts"
import { refusedBehind, refusedForDelay } from "./refused.ts"
import type { Slots } from "./slots.ts"
import type { Ticket } from "./ticket.ts"

interface Parts {
  readonly decider: Deciding
  readonly lines: Lines
  readonly slots: Slots
  readonly alarm: Alarm
  /** Somebody's turn may have come, now that others have left. */
  left(): void
}

/** How those who wait leave: with what they wanted, refused, or because they have given up. */
export class Departures {
  readonly #parts: Parts
  /** Those who have not left. */
  readonly #tickets = new Set<Ticket>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** How many have not left. */
  get size(): number {
    return this.#tickets.size
  }

  arrived(ticket: Ticket): void {
    this.#tickets.add(ticket)
  }

  /** Those who have not left, the first to come first. */
  present(): readonly Ticket[] {
    return [...this.#tickets]
  }

  /** It leaves with this decision. */
  end(ticket: Ticket, decision: Decision): void {
    this.#leave(ticket)
    ticket.end({ decision })
  }

  /** It is the first everywhere, and has what it asked for. */
  goOn(ticket: Ticket): void {
    const { slots, alarm, lines } = this.#parts
    const decision = ticket.granted as Decision
    const delayMs = this.#delayOf(ticket, decision)
    if (ticket.step === "done") return
    const nowMs = alarm.now()
    const untilMs = nowMs + delayMs
    if (delayMs === 0) this.end(ticket, decision)
    else if (ticket.isCrowdedOut) {
      slots.refund(ticket, decision)
      this.refuseBehind(ticket)
    } else if (untilMs > ticket.deadlineMs) {
      const refused = refusedForDelay(decision, ticket.awaited, ticket.deadlineMs - nowMs)
      slots.refund(ticket, decision)
      this.end(ticket, refused)
    } else {
      slots.hold(ticket)
      lines.leave(ticket)
      ticket.step = "held"
      ticket.untilMs = untilMs
      this.at(untilMs, ticket, ticket.startTurn(), () => this.end(ticket, decision))
      this.tellOfWait(ticket)
    }
  }

  /** It does not wait for this refusal, which counts where refusals do. */
  refuse(ticket: Ticket, decision: Decision): void {
    if (!countRefusals(ticket.asks)) {
      this.end(ticket, decision)
      return
    }
    this.#leaveAsking(ticket, (counted) => {
      if (!counted.allowed) return counted
      // Too late for what has come in the meantime: others may have gone before it.
      this.#parts.slots.refund(ticket, counted)
      return decision
    })
  }

  /** Waiting would make no difference to it any more: it leaves with what it is told now. */
  answer(ticket: Ticket): void {
    this.#leaveAsking(ticket, (decision) => decision)
  }

  /** A rule that is not waited for refuses at once, also who has to wait for others. */
  askOthers(ticket: Ticket): void {
    const others = ticket.asks.filter((ask) => !ask.shadow && !ticket.patience.waitsFor(ask))
    const { decider, left } = this.#parts
    whenDecided(decider.peek(others), (decision) => {
      if (decision.allowed || (ticket.step !== "idle" && ticket.step !== "vain")) return
      this.refuse(ticket, decision)
      left()
    })
  }

  /** It cannot wait until those ahead have gone. */
  refuseBehind(ticket: Ticket): void {
    this.end(ticket, this.refusalBehind(ticket.asks, ticket.standsFor))
  }

  /** The refusal of who would have to wait for the counters of the asks `behind`. */
  refusalBehind(asks: readonly Ask[], behind: readonly Ask[]): Decision {
    const { lines, alarm } = this.#parts
    const nowMs = alarm.now()
    return refusedBehind(asks, behind, Math.max(...behind.map((ask) => lines.waitMs(ask, nowMs))))
  }

  /** It leaves without a decision. What it has been granted goes back. */
  giveUp(ticket: Ticket, error: unknown): void {
    if (ticket.step === "done") return
    const { slots, left } = this.#parts
    if (ticket.granted !== undefined) slots.refund(ticket, ticket.granted)
    this.#leave(ticket)
    ticket.end({ error })
    left()
  }

  allGiveUp(error: unknown): void {
    for (const ticket of this.present()) this.giveUp(ticket, error)
  }

  /** It has to wait: who has asked to be told is told, and may have it leave. */
  tellOfWait(ticket: Ticket): void {
    ticket.waits((reason) => this.giveUp(ticket, reason))
  }

  /** It leaves when its patience ends, unless it is its turn by then. */
  endInTime(ticket: Ticket): void {
    if (ticket.isTimed) return
    ticket.isTimed = true
    // Whose patience ends now may have its turn now.
    this.at(ticket.deadlineMs + 1, ticket, ticket.startPatience(), () => {
      ticket.isLate = true
      if (ticket.step === "idle" || ticket.step === "vain") this.refuseBehind(ticket)
      this.#parts.left()
    })
  }

  /** Calls back at an instant, unless that has been ended; where the clock cannot wait, the ticket gives up. */
  at(untilMs: number, ticket: Ticket, ended: AbortSignal, then: () => void): void {
    if (untilMs === Number.POSITIVE_INFINITY) return
    this.#parts.alarm.at(untilMs, ended, then, (error) => this.giveUp(ticket, error))
  }

  /** For how long it is held: not at all where the rules that delay it have gone while it was being decided. */
  #delayOf(ticket: Ticket, decision: Decision): number {
    const delayMs = ticket.delayOf(decision)
    return ticket.isOutdated && !isHeldAnew(ticket, decision) ? 0 : delayMs
  }

  /** It leaves the line, and ends with what is made of the answer to all that it asks for. */
  #leaveAsking(ticket: Ticket, decisionOf: (answer: Decision) => Decision): void {
    const { decider, slots } = this.#parts
    this.#leave(ticket)
    ticket.step = "leaving"
    whenDecided(decider.take(ticket.tryNow().asks), (answer) => {
      const decision = decisionOf(answer)
      if (ticket.step === "leaving") ticket.end({ decision })
      // Nothing, where that is a refusal.
      else slots.refund(ticket, decision)
    })
  }

  #leave(ticket: Ticket): void {
    const { lines, slots } = this.#parts
    this.#tickets.delete(ticket)
    if (ticket.step !== "held" && ticket.step !== "leaving") lines.leave(ticket)
    slots.release(ticket)
    for (const { line } of ticket.places) lines.forget(line)
  }
}
