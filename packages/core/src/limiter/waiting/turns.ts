import { algorithmOf } from "../../algorithms/kinds.ts"
import type { Decider } from "../../decision/decider.ts"
import type { Decision } from "../../decision/decision.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"
import type { CounterKey } from "../../stores/store.ts"
import type { Line } from "./line.ts"
import type { Lines } from "./lines.ts"
import type { Ticket } from "./ticket.ts"

/**
 * The turns that leaky buckets have given out. If a request leaves before its turn, its units are refunded once no
 * request has a later turn. If they were refunded sooner, the next request would get the turn of the last one, and both
 * would go on at once.
 */
export class Turns {
  readonly #lines: Lines
  readonly #decider: Decider
  readonly #wake: (counters: readonly CounterKey[]) => void

  /** `wake` is called with counters that have units again. */
  constructor(lines: Lines, decider: Decider, wake: (counters: readonly CounterKey[]) => void) {
    this.#lines = lines
    this.#decider = decider
    this.#wake = wake
  }

  /** Holds a request until its turn, which is later than all turns given out before. */
  hold(ticket: Ticket): void {
    ticket.turns = ticket.awaited.map((ruleCheck) => {
      const line = this.#lines.at(ruleCheck)
      return line.held.add({ ticket, line, returns: line.returns.splice(0) })
    })
  }

  /** Ends the hold of a request. */
  release(ticket: Ticket): void {
    for (const turn of ticket.turns) {
      turn.item.line.held.remove(turn)
      this.#lines.makeDue(turn.item.line)
    }
    ticket.turns = []
  }

  /** Refunds units that were granted to a request that does not go on. */
  refund(ticket: Ticket, decision: Decision): void {
    const kept = ticket.awaited.filter((ruleCheck) => this.#refundLater(ticket, ruleCheck, decision))
    this.#refund(decision, (counter) => !kept.some((ruleCheck) => isSame(ruleCheck, counter)))
  }

  /** Makes the refunds that were kept because another request might have got a later turn. */
  flush(line: Line<Ticket>): void {
    if (line.asking > 0) return
    for (const refund of line.returns.splice(0)) refund()
  }

  #refundLater(ticket: Ticket, ruleCheck: RuleCheck, decision: Decision): boolean {
    const line = this.#lines.find(ruleCheck)
    if (line === undefined || algorithmOf(ruleCheck.policy).delayMs === undefined) return false
    const turn = ticket.turns.find(({ item }) => item.line === line)
    const later = turn?.behind?.item.returns ?? line.returns
    later.push(...(turn?.item.returns ?? []), () =>
      this.#refund(decision, (counter) => isSame(ruleCheck, counter)),
    )
    this.flush(line)
    return true
  }

  #refund(decision: Decision, isMeant: (counter: CounterKey) => boolean): void {
    void this.#decider.corrections.refundInBackground(decision, isMeant).then(this.#wake)
  }
}

function isSame(one: CounterKey, other: CounterKey): boolean {
  return one.policy.counter === other.policy.counter && one.partition === other.partition
}
