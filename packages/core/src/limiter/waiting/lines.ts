import type { RuleCheck } from "../../decision/rule-check.ts"
import type { CounterKey } from "../../stores/store.ts"
import type { Attempt } from "./attempt.ts"
import { Line } from "./line.ts"
import type { Ticket } from "./ticket.ts"
import { mostWaiting } from "./wait-options.ts"

/** The lines of all counters for which requests wait, are asking or are held. */
export class Lines {
  readonly #lines = new Map<string, Line<Ticket>>()
  /** Lines in which somebody's turn may have come. */
  readonly #due = new Set<Line<Ticket>>()

  /** Returns the line of a counter, if there is one. */
  find({ policy, partition }: CounterKey): Line<Ticket> | undefined {
    // All counters of a policy have names of one length.
    return this.#lines.get(policy.counter + partition)
  }

  /** Returns the line of a counter, a new one if there is none. */
  at(counter: CounterKey): Line<Ticket> {
    let line = this.find(counter)
    if (line === undefined) {
      line = new Line(counter.policy.counter + counter.partition)
      this.#lines.set(line.name, line)
      // To be forgotten if nobody needs it after all.
      this.#due.add(line)
    }
    return line
  }

  /** Whether a request that comes now would wait in vain: too many wait for this counter, or the first of them waits too long. */
  isInVain(ruleCheck: RuleCheck, { options, deadlineMs }: Ticket): boolean {
    const line = this.find(ruleCheck)
    if (line === undefined) return false
    // A request that may not stand in line asks the store if nobody does: there may be room.
    const most = Math.max(1, mostWaiting(options, ruleCheck))
    return line.count(options) >= most || (line.untilMs ?? 0) > deadlineMs
  }

  /** Returns for how many milliseconds a request that comes now waits for this counter at least: 1 or more. */
  waitMs(ruleCheck: RuleCheck, nowMs: number): number {
    const line = this.find(ruleCheck)
    const untilMs = line?.untilMs ?? line?.held.first?.item.ticket.untilMs ?? 0
    return Math.max(1, Math.ceil(untilMs - nowMs))
  }

  /** Returns the rule check for whose counter a request waits that came before this one, if there is one. */
  waiterBefore(ticket: Ticket): RuleCheck | undefined {
    return ticket.awaited.find((ruleCheck) => this.find(ruleCheck)?.hasBefore(ticket))
  }

  /**
   * Whether a request ahead of this one, in the order of asking, had to wait after this one had asked: then what this one was
   * granted is not its own.
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

  /** Returns one of the lines in which somebody's turn may have come, each once. */
  nextDue(): Line<Ticket> | undefined {
    for (const line of this.#due) {
      this.#due.delete(line)
      return line
    }
    return undefined
  }

  /** Forgets a line that nobody needs. */
  forget(line: Line<Ticket>): void {
    // It may have been forgotten before, and there may be a new one.
    if (line.isEmpty && this.#lines.get(line.name) === line) this.#lines.delete(line.name)
  }
}
