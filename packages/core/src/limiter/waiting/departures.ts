import type { Decider } from "../../decision/decider.ts"
import type { Decision } from "../../decision/decision.ts"
import { countRefusals } from "../../decision/penalties.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import type { Alarm } from "./alarm.ts"
import type { Lines } from "./lines.ts"
import { refusedBehind, refusedForDelay } from "./refused.ts"
import type { Ticket } from "./ticket.ts"
import type { Turns } from "./turns.ts"

interface DepartureParts {
  readonly decider: Decider
  readonly lines: Lines
  readonly turns: Turns
  readonly alarm: Alarm
  /** Called when requests have left, so that somebody's turn may have come. */
  left(): void
}

/** How requests leave the waiting room: admitted, refused, or because they give up. */
export class Departures {
  readonly #parts: DepartureParts
  /** The requests that have not left. */
  readonly #present = new Set<Ticket>()

  constructor(parts: DepartureParts) {
    this.#parts = parts
  }

  /** How many requests have not left. */
  get size(): number {
    return this.#present.size
  }

  arrived(ticket: Ticket): void {
    this.#present.add(ticket)
  }

  /** The requests that have not left, the first to come first. */
  get present(): readonly Ticket[] {
    return [...this.#present]
  }

  end(ticket: Ticket, decision: Decision): void {
    this.#leave(ticket)
    ticket.end({ decision })
  }

  /** The request has been granted what it asked for: it goes on, is held until its turn, or is refused for its delay. */
  goOn(ticket: Ticket, decision: Decision): void {
    const { turns, alarm } = this.#parts
    ticket.granted = decision
    const delayMs = ticket.delayOf(decision)
    // What reads its request may have ended the wait.
    if (ticket.step === "done") return
    const nowMs = alarm.now()
    const untilMs = nowMs + delayMs
    if (delayMs === 0) this.end(ticket, decision)
    else if (this.isCrowdedOut(ticket)) {
      turns.refund(ticket, decision)
      this.end(ticket, this.refusalBehind(ticket.ruleChecks, ticket.awaited))
    } else if (untilMs > ticket.deadlineMs) {
      const refused = refusedForDelay(decision, ticket.awaited, ticket.deadlineMs - nowMs)
      turns.refund(ticket, decision)
      this.end(ticket, refused)
    } else {
      turns.hold(ticket)
      ticket.step = "held"
      ticket.untilMs = untilMs
      const go = () => {
        this.end(ticket, decision)
        this.#parts.left()
      }
      ticket.atEnd(alarm.at(untilMs, go, (error) => this.giveUp(ticket, error)))
      this.tellOfWait(ticket)
    }
  }

  /** Whether as many requests are held already as may wait. */
  isCrowdedOut({ options, awaited }: Ticket): boolean {
    const { countsHeld = true, maxWaiting } = options
    return (
      countsHeld &&
      awaited.some((ruleCheck) => (this.#parts.lines.find(ruleCheck)?.held.size ?? 0) >= maxWaiting)
    )
  }

  /** Refuses a request that does not wait for this refusal, which is counted if refusals are. */
  refuse(ticket: Ticket, decision: Decision): void {
    if (!countRefusals(ticket.ruleChecks)) {
      this.end(ticket, decision)
      return
    }
    this.#leaveAsking(ticket, (counted) => {
      if (!counted.allowed) return counted
      // Too late for units that have come back in the meantime: others may have gone before it.
      this.#parts.turns.refund(ticket, counted)
      return decision
    })
  }

  /** Waiting makes no difference to the request any more: it leaves with the answer that it gets now. */
  answer(ticket: Ticket): void {
    this.#leaveAsking(ticket, (decision) => decision)
  }

  /** A rule that is not waited for refuses at once, also a request that waits behind others and has asked nothing yet. */
  askOthers(ticket: Ticket): void {
    if (!isUnasked(ticket)) return
    const others = ticket.ruleChecks.filter(
      (ruleCheck) => !ruleCheck.shadow && !ticket.options.waitsFor(ruleCheck),
    )
    whenDecided(this.#parts.decider.peek(others), (decision) => {
      // Once the request has asked for everything, the answer to that is newer.
      if (decision.allowed || !isUnasked(ticket)) return
      this.refuse(ticket, decision)
      this.#parts.left()
    })
  }

  /** Refuses a request that cannot wait until those ahead have gone. */
  refuseBehind(ticket: Ticket): void {
    this.end(ticket, this.refusalBehind(ticket.ruleChecks, [ticket.ruleCheck as RuleCheck]))
  }

  /** Returns the refusal of a request that would have to wait for the counters of the rule checks `behind`. */
  refusalBehind(ruleChecks: readonly RuleCheck[], behind: readonly RuleCheck[]): Decision {
    const { lines, alarm } = this.#parts
    const nowMs = alarm.now()
    return refusedBehind(
      ruleChecks,
      behind,
      Math.max(...behind.map((ruleCheck) => lines.waitMs(ruleCheck, nowMs))),
    )
  }

  /** The request leaves without a decision. What it has been granted goes back. */
  giveUp(ticket: Ticket, error: unknown): void {
    if (ticket.step === "done") return
    if (ticket.granted !== undefined) this.#parts.turns.refund(ticket, ticket.granted)
    this.#leave(ticket)
    ticket.end({ error })
    this.#parts.left()
  }

  /** The request has to wait: tells whoever wants to know, who may have it leave. */
  tellOfWait(ticket: Ticket): void {
    ticket.waits((reason) => this.giveUp(ticket, reason))
  }

  /** The request leaves the line, and ends with what `decisionOf` makes of the answer to all that it asks for. */
  #leaveAsking(ticket: Ticket, decisionOf: (answer: Decision) => Decision): void {
    const { decider, turns } = this.#parts
    this.#leave(ticket)
    ticket.step = "leaving"
    whenDecided(decider.take(ticket.startAttempt().ruleChecks), (answer) => {
      const decision = decisionOf(answer)
      if (ticket.step === "leaving") ticket.end({ decision })
      // A no-op if that is a refusal.
      else turns.refund(ticket, decision)
    })
  }

  #leave(ticket: Ticket): void {
    const { lines, turns } = this.#parts
    this.#present.delete(ticket)
    lines.leave(ticket)
    turns.release(ticket)
  }
}

function isUnasked({ step, attempt }: Ticket): boolean {
  return step === "waiting" && attempt === undefined
}

/** Calls back with the decision, at once if it is there. */
function whenDecided(decision: MaybePromise<Decision>, then: (decision: Decision) => void): void {
  if (decision instanceof Promise) void decision.then(then)
  else then(decision)
}
