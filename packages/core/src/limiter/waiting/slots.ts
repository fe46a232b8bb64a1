import { algorithmOf } from "../../algorithms/kinds.ts"
import type { Decision } from "../../decision/decision.ts"
import { DecisionRecord } from "../../decision/decision-record.ts"
import type { Ask } from "../../decision/rule-check.ts"
import type { CounterKey } from "../../stores/store.ts"
import { isSame } from "./counter.ts"
import type { Deciding } from "./deciding.ts"
import type { Line } from "./line.ts"
import type { Lines } from "./lines.ts"
import type { Place } from "./queue.ts"
import type { Slot, Ticket } from "./ticket.ts"

/** Told of counters that have units again for which others may wait, and of who waits there as well and had them in vain. */
type Wake = (counters: readonly CounterKey[], inVain: Ticket | undefined) => void

/**
 * The turns that leaky buckets have given out. The units of who leaves before its turn go back when nobody in line has a
 * later one: sooner, and who comes next would be given the turn of the last, so that two went on at one instant.
 */
export class Slots {
  readonly #lines: Lines
  readonly #decider: Deciding
  readonly #wake: Wake

  constructor(lines: Lines, decider: Deciding, wake: Wake) {
    this.#lines = lines
    this.#decider = decider
    this.#wake = wake
  }

  /** It waits for its turn, which is the last of those that have been given out. */
  hold(ticket: Ticket): void {
    const decision = ticket.granted as Decision
    ticket.slots = ticket.places.map(({ line }, i) => ({
      line,
      place: line.held.append(ticket),
      turnMs: turnOf(decision, ticket.standsFor[i] as Ask),
      returns: line.returns.splice(0),
    }))
  }

  /** It waits for it no more. */
  release(ticket: Ticket): void {
    for (const { line, place } of ticket.slots) line.held.remove(place)
    ticket.slots = []
  }

  /** It does not go on with what it was granted. */
  refund(ticket: Ticket, decision: Decision): void {
    const later = ticket.awaited.filter((ask) => this.#isGivenBackLater(ticket, ask, decision))
    this.#refund(ticket, decision, (counter) => !later.some((ask) => isSame(ask, counter)))
  }

  /** What is to be given back of a line when nobody in it has a later turn. */
  flush(line: Line<Ticket>): void {
    // Who is asking may be given a later one just now, and when it has been answered its lines are due.
    if (line.asking > 0) return
    for (const refund of line.returns.splice(0)) refund()
    this.#lines.forget(line)
  }

  #isGivenBackLater(ticket: Ticket, ask: Ask, decision: Decision): boolean {
    const line = this.#lines.find(ask)
    if (line === undefined || algorithmOf(ask.policy).delayMs === undefined) return false
    const slot = slotIn(ticket, line)
    const next =
      slot === undefined ? firstAfter(turnOf(decision, ask), line) : slotAt(slot.place.behind, line)
    const returns = next?.returns ?? line.returns
    const refund = () => this.#refund(ticket, decision, (counter) => isSame(ask, counter))
    returns.push(...(slot?.returns ?? []), refund)
    this.flush(line)
    return true
  }

  #refund(ticket: Ticket, decision: Decision, isMeant: (counter: CounterKey) => boolean): void {
    void this.#decider.refundInBackground(decision, isMeant).then((counters) => {
      this.#wake(counters, ticket.step === "done" ? undefined : ticket)
    })
  }
}

function slotIn({ slots }: Ticket, line: Line<Ticket>): Slot | undefined {
  return slots.find((slot) => slot.line === line)
}

/** That of whoever is held at a place of this line. */
function slotAt(place: Place<Ticket> | undefined, line: Line<Ticket>): Slot | undefined {
  return place && slotIn(place.who, line)
}

/** When it is the turn of who was granted this, by the store's time. */
function turnOf(decision: Decision, { policy }: Ask): number {
  const nowMs = DecisionRecord.receiptOf(decision)?.answer.nowMs ?? 0
  for (const check of decision.checks) if (check.policy === policy.name) return nowMs + check.delayMs
  return nowMs
}

/** Of those who are held, the first whose turn is after that of one who was still asking when it left. */
function firstAfter(turnMs: number, line: Line<Ticket>): Slot | undefined {
  let first: Slot | undefined
  let slot = slotAt(line.held.last, line)
  while (slot !== undefined && slot.turnMs > turnMs) {
    first = slot
    slot = slotAt(slot.place.ahead, line)
  }
  return first
}
