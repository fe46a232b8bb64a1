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
  /** Called when requests have left, so that another request's turn may have come. */
  left(): void
}

/** Lets requests leave the waiting room: admitted, refused, or because they give up. */
export class Departures {
  readonly #parts: DepartureParts
  /** The requests that have not left. */
  readonly #present = new Set<Ticket>()

  constructor(parts: DepartureParts) {
    this.#parts = parts
  }

  /** Number of requests that have not left. */
  get size(): number {
    return this.#present.size
  }

  arrived(ticket: Ticket): void {
    this.#present.add(ticket)
  }

  /** The requests that have not left, in order of arrival. */
  get present(): readonly Ticket[] {
    return [...this.#present]
  }

  end(ticket: Ticket, decision: Decision): void {
    this.#leave(ticket)
    ticket.end({ decision })
  }

  /** Processes a grant. The request goes on, is held until its turn, or is refused because of its delay. */
  goOn(ticket: Ticket, decision: Decision): void {
    const { turns, alarm } = this.#parts
    ticket.granted = decision
    const delayMs = ticket.delayOf(decision)
    // The app's code that reads the request may have ended the wait.
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

  /** Whether the maximum number of waiting requests is already held. */
  isCrowdedOut({ options, awaited }: Ticket): boolean {
    const { countsHeld = true, maxWaiting } = options
    return (
      countsHeld &&
      awaited.some((ruleCheck) => (this.#parts.lines.find(ruleCheck)?.held.size ?? 0) >= maxWaiting)
    )
  }

  /**
   * Refuses a request that does not wait out this refusal. If refusals count, asks the store again so that it counts.
   */
  refuse(ticket: Ticket, decision: Decision): void {
    if (!countRefusals(ticket.ruleChecks)) {
      this.end(ticket, decision)
      return
    }
    this.#leaveAsking(ticket, (counted) => {
      if (!counted.allowed) return counted
      // Units that have come back in the meantime are too late: others may have gone first.
      this.#parts.turns.refund(ticket, counted)
      return decision
    })
  }

  /** Lets a request leave with the store's current answer, because waiting no longer makes a difference. */
  answer(ticket: Ticket): void {
    this.#leaveAsking(ticket, (decision) => decision)
  }

  /**
   * Refuses a request at once if a rule that is not waited for refuses it. This applies to requests in line, too, that
   * have not asked the store yet.
   */
  askOthers(ticket: Ticket): void {
    if (!isUnasked(ticket)) return
    const others = ticket.ruleChecks.filter(
      (ruleCheck) => !ruleCheck.shadow && !ticket.options.waitsFor(ruleCheck),
    )
    whenDecided(this.#parts.decider.peek(others), (decision) => {
      // If the request has asked for everything in the meantime, that answer is newer.
      if (decision.allowed || !isUnasked(ticket)) return
      this.refuse(ticket, decision)
      this.#parts.left()
    })
  }

  /** Refuses a request that cannot wait until the requests ahead of it have gone. */
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

  /** Lets a request leave without a decision. Units that it was granted are refunded. */
  giveUp(ticket: Ticket, error: unknown): void {
    if (ticket.step === "done") return
    if (ticket.granted !== undefined) this.#parts.turns.refund(ticket, ticket.granted)
    this.#leave(ticket)
    ticket.end({ error })
    this.#parts.left()
  }

  /** Calls the request's `onWait` because it has to wait. The callback may end the wait. */
  tellOfWait(ticket: Ticket): void {
    ticket.waits((reason) => this.giveUp(ticket, reason))
  }

  /** Lets the request leave its line and asks the store for all its checks. It ends with the result of `decisionOf`. */
  #leaveAsking(ticket: Ticket, decisionOf: (answer: Decision) => Decision): void {
    const { decider, turns } = this.#parts
    this.#leave(ticket)
    ticket.step = "leaving"
    whenDecided(decider.take(ticket.startAttempt().ruleChecks), (answer) => {
      const decision = decisionOf(answer)
      if (ticket.step === "leaving") ticket.end({ decision })
      // A no-op if the decision is a refusal.
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

/** Calls back with the decision, synchronously if it is available. */
function whenDecided(decision: MaybePromise<Decision>, then: (decision: Decision) => void): void {
  if (decision instanceof Promise) void decision.then(then)
  else then(decision)
}
