import type { Ask } from "../../decision/rule-check.ts"
import type { CounterKey } from "../../stores/store.ts"
import { nameOf } from "./counter.ts"
import { Line } from "./line.ts"
import { cameBefore, type Place } from "./queue.ts"
import { countWaiting, mostWaiting, type Patience, type Ticket } from "./ticket.ts"

/** The lines in which somebody waits, by counter, and who stands where. */
export class Lines {
  readonly #lines = new Map<string, Line<Ticket>>()
  /** Those in which somebody's turn may have come. */
  readonly #due = new Set<Line<Ticket>>()

  /** Whether it is known already that who comes now waits in vain: too many wait there, or the first of them for too long. */
  isInVain(ask: Ask, patience: Patience, deadlineMs: number): boolean {
    const line = this.find(ask)
    if (line === undefined) return false
    const first = line.first?.who
    // Who may not stand in line asks the store when nobody does: there may be room.
    const most = Math.max(1, mostWaiting(patience, ask))
    return countWaiting(line, patience) >= most || (first?.step === "sleeping" && first.untilMs > deadlineMs)
  }

  /** Milliseconds for which who comes to this counter now waits at least, 1 or more. */
  waitMs(ask: Ask, nowMs: number): number {
    const line = this.find(ask)
    const first = line?.first?.who
    const next = first?.step === "sleeping" ? first : line?.held.first?.who
    return next === undefined ? 1 : Math.max(1, Math.ceil(next.untilMs - nowMs))
  }

  /** It stands where it has to wait: in all its lines, or where somebody sleeps who came earlier in that one alone. */
  stand(ticket: Ticket): void {
    for (const { line } of ticket.places) line.sleepers.delete(ticket)
    this.#move(ticket, this.#whereToWait(ticket))
    this.makeAllDue(ticket)
  }

  /** It sleeps until there is something for this ask. */
  sleep(ticket: Ticket, ask: Ask): void {
    this.park(ticket, ask)
    for (const { line } of ticket.places) line.sleepers.add(ticket)
  }

  /** It goes out of all lines but that of this ask, so that nobody waits behind it for a counter that has units. */
  park(ticket: Ticket, ask: Ask): void {
    this.#move(ticket, [ask])
  }

  /** The same for who stands in several and has to wait for somebody who sleeps in one of them. */
  parkBehind(ticket: Ticket): void {
    this.#move(ticket, this.#whereToWait(ticket))
  }

  /**
   * Those who have asked in vain go behind those who came earlier: these were put behind them while they asked, back from
   * where they had to wait.
   */
  sort(stopped: readonly Ticket[]): void {
    for (const ticket of stopped.toSorted((one, other) => other.number - one.number)) {
      if (isAheadOfEarlier(ticket)) this.#goBehind(ticket)
    }
  }

  /** It goes out of every line. */
  leave(ticket: Ticket): void {
    for (const place of ticket.places) this.#give(place)
  }

  /** Forgets the line, if nobody is in it any more. */
  forget(line: Line<Ticket>): void {
    // Who left may have been forgotten with its line before, and others may stand in a new one.
    if (line.isEmpty && this.#lines.get(line.name) === line) this.#lines.delete(line.name)
  }

  /** The line of a counter, where there is one. */
  find(counter: CounterKey): Line<Ticket> | undefined {
    return this.#lines.get(nameOf(counter))
  }

  /** Somebody's turn may have come in it. */
  makeDue(line: Line<Ticket>): void {
    this.#due.add(line)
  }

  /** The same in all lines in which it stands. */
  makeAllDue({ places }: Ticket): void {
    for (const { line } of places) this.#due.add(line)
  }

  /** One of those in which somebody's turn may have come, which it is told of once. */
  nextDue(): Line<Ticket> | undefined {
    for (const line of this.#due) {
      this.#due.delete(line)
      return line
    }
    return undefined
  }

  /** It goes behind those who came earlier, in each of its lines. */
  #goBehind(ticket: Ticket): void {
    ticket.places = ticket.places.map((place) => {
      place.line.remove(place)
      return place.line.add(ticket)
    })
    this.makeAllDue(ticket)
  }

  /**
   * All that it waits for, or that for which somebody sleeps who came earlier: until that one wakes there is nothing for
   * others.
   */
  #whereToWait(ticket: Ticket): readonly Ask[] {
    const blocking = ticket.awaited.find((ask) => {
      const first = this.find(ask)?.first?.who
      return first?.step === "sleeping" && cameBefore(first, ticket)
    })
    return blocking === undefined ? ticket.awaited : [blocking]
  }

  /** Where it stands already it keeps its place: many move at once when rules change, and each would look for its own anew. */
  #move(ticket: Ticket, asks: readonly Ask[]): void {
    const left = [...ticket.places]
    const isNew = left.length === 0
    ticket.standsFor = asks
    ticket.places = asks.map((ask) => {
      const line = this.#of(ask)
      const at = left.findIndex((place) => place.line === line)
      return (
        left.splice(at, at < 0 ? 0 : 1)[0] ??
        this.#take(line, ticket, mostWaiting(ticket.patience, ask), isNew)
      )
    })
    for (const place of left) this.#give(place)
    for (const { line } of ticket.places) {
      if (asks.length > 1) line.roaming.add(ticket)
      else line.roaming.delete(ticket)
    }
  }

  /** It has a place in a line. */
  #take(line: Line<Ticket>, ticket: Ticket, most: number, isNew: boolean): Place<Ticket, Line<Ticket>> {
    // Who comes has been told whether too many wait there.
    if (!isNew) line.hasUncounted = true
    if (ticket.isImpatient) line.impatient.add(ticket)
    line.fewest = Math.min(line.fewest, most)
    return line.add(ticket)
  }

  /** Nobody has this place any more. */
  #give(place: Place<Ticket, Line<Ticket>>): void {
    const { line, who } = place
    if (who.isAsking) line.asking--
    line.impatient.delete(who)
    line.roaming.delete(who)
    line.sleepers.delete(who)
    line.remove(place)
    this.makeDue(line)
    this.forget(line)
  }

  /** The line of a counter, which is new where nobody waits for it. */
  #of(counter: CounterKey): Line<Ticket> {
    const name = nameOf(counter)
    const line = this.#lines.get(name) ?? new Line(name)
    this.#lines.set(name, line)
    return line
  }
}

/** Whether anybody right behind it came earlier, and has not been let go. */
function isAheadOfEarlier(ticket: Ticket): boolean {
  return ticket.places.some(
    ({ behind }) => behind !== undefined && !behind.who.isAsking && cameBefore(behind.who, ticket),
  )
}
