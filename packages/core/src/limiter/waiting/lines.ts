import type { RuleCheck } from "../../decision/rule-check.ts"
import type { CounterKey } from "../../stores/store.ts"
import type { Attempt } from "./attempt.ts"
import { Line } from "./line.ts"
import type { Ticket } from "./ticket.ts"
import { mostWaiting } from "./wait-options.ts"

/** The lines of all counters for which requests wait, are asking or are held. */
export class Lines {
  readonly #lines = new Map<string, Line<Ticket>>()
  /** Lines in which a request's turn may have come. */
  readonly #due = new Set<Line<Ticket>>()

  /** Returns the line of a counter, if there is one. */
  find({ policy, partition }: CounterKey): Line<Ticket> | undefined {
    // Counter names of a policy have a fixed length, so the key is unambiguous.
    return this.#lines.get(policy.counter + partition)
  }

  /** Returns the line of a counter, and creates it if necessary. */
  at(counter: CounterKey): Line<Ticket> {
    let line = this.find(counter)
    if (line === undefined) {
      line = new Line(counter.policy.counter + counter.partition)
      this.#lines.set(line.name, line)
      // Marked as due, so that the line is removed if it turns out not to be needed.
      this.#due.add(line)
    }
    return line
  }

  /**
   * True if waiting would be pointless for a request that arrives now. Either too many wait for this counter, or the
   * line sleeps past the request's deadline.
   */
  isInVain(ruleCheck: RuleCheck, { options, deadlineMs }: Ticket): boolean {
    const line = this.find(ruleCheck)
    if (line === undefined) return false
    // A request that is not allowed to queue asks the store if the line is empty, because there may be room.
    const most = Math.max(1, mostWaiting(options, ruleCheck))
    return line.count(options) >= most || (line.untilMs ?? 0) > deadlineMs
  }

  /** Returns the minimum wait for this counter of a request that arrives now, in milliseconds: 1 or more. */
  waitMs(ruleCheck: RuleCheck, nowMs: number): number {
    const line = this.find(ruleCheck)
    const untilMs = line?.untilMs ?? line?.held.first?.item.ticket.untilMs ?? 0
    return Math.max(1, Math.ceil(untilMs - nowMs))
  }

  /** Returns the rule check for whose counter an earlier request waits, if there is one. */
  waiterBefore(ticket: Ticket): RuleCheck | undefined {
    return ticket.awaited.find((ruleCheck) => this.find(ruleCheck)?.hasBefore(ticket))
  }

  /**
   * True if a request that asked earlier was refused after this request had asked. Then the units granted to this
   * request belong to the other one.
   */
  isOvertaking(ticket: Ticket, { number }: Attempt): boolean {
    return ticket.awaited.some((ruleCheck) => (this.find(ruleCheck)?.refusedAt ?? 0) > number)
  }

  /** Puts a request into the line of one of its rule checks. */
  stand(ticket: Ticket, ruleCheck: RuleCheck): Line<Ticket> {
    const line = this.at(ruleCheck)
    ticket.step = "waiting"
    ticket.place = line.add(ticket, ruleCheck)
    ticket.ruleCheck = ruleCheck
    ticket.line = line
    ticket.isKnown = true
    this.#due.add(line)
    return line
  }

  /** Takes a request out of its line; a no-op if it does not wait. */
  leave(ticket: Ticket): void {
    const { line, place } = ticket
    if (line === undefined || place === undefined) return
    line.remove(place)
    ticket.place = undefined
    this.#due.add(line)
  }

  makeDue(line: Line<Ticket>): void {
    this.#due.add(line)
  }

  /** Removes and returns one of the due lines. */
  nextDue(): Line<Ticket> | undefined {
    for (const line of this.#due) {
      this.#due.delete(line)
      return line
    }
    return undefined
  }

  /** Removes a line that is not needed. */
  forget(line: Line<Ticket>): void {
    // This line may have been removed before, and the counter may have a new one.
    if (line.isEmpty && this.#lines.get(line.name) === line) this.#lines.delete(line.name)
  }
}
