import type { Clock } from "../../clock.ts"
import { ClosedError } from "../../errors.ts"
import type { MaybePromise } from "../../stores/store.ts"
import { type Ask, isHopeless } from "../ask.ts"
import type { Decision } from "../decision.ts"
import { countRefusals } from "../penalties.ts"
import { Alarm } from "./alarm.ts"
import type { Line } from "./line.ts"
import { Lines } from "./lines.ts"
import { onAbort } from "./on-abort.ts"
import { inVainUntil, leaveLines, standInLine, stopAsking } from "./order.ts"
import { refusedBehind, refusedForDelay } from "./refused.ts"
import { type Patience, Ticket } from "./ticket.ts"

/** Who decides: as a Decider does, `take` and `peek` never throwing and never rejecting. */
export interface Deciding {
  take(asks: readonly Ask[]): MaybePromise<Decision>
  /** The same, without counting a refusal where refusals count. */
  takeIfItFits(asks: readonly Ask[]): MaybePromise<Decision>
  peek(asks: readonly Ask[]): MaybePromise<Decision>
  refund(decision: Decision): Promise<void>
}

/**
 * Where requests wait until they are admitted, first come first served. There is a line for each counter; a request is in
 * the lines of all its counters at once, and its turn has come when it is the first in each. While one of them has nothing
 * for it, it stands in that line alone: who waits for one counter keeps nobody waiting for another.
 *
 * Nobody polls. The first who is refused sleeps as long as the refusal says, by the limiter's clock, and asks again. As long
 * as nobody is refused all ask at once; who is granted while one ahead of it turns out to be refused gives it back and
 * waits on.
 */
export class WaitingRoom {
  readonly #decider: Deciding
  readonly #alarm: Alarm
  readonly #lines = new Lines()
  /** Those who have not been answered. */
  readonly #tickets = new Set<Ticket>()
  /** Lines in which somebody's turn may have come. */
  readonly #due = new Set<Line<Ticket>>()
  #isServing = false
  #closed: ClosedError | undefined

  constructor(decider: Deciding, clock: Clock) {
    this.#decider = decider
    this.#alarm = new Alarm(clock)
  }

  /**
   * The decision, when there is one: it is admitted, or refused for more than `patience` allows. A value where nobody has
   * to wait and the store answers with one. Throws or rejects when it is given up, with the signal's reason or ClosedError;
   * nothing stays taken then.
   */
  enter(asks: readonly Ask[], patience: Patience): MaybePromise<Decision> {
    if (this.#closed !== undefined) throw this.#closed
    patience.signal?.throwIfAborted()
    const awaited = asks.filter((ask) => isAwaited(ask, patience))
    if (awaited.length === 0 || asks.some((ask) => isHopeless(ask) && !ask.shadow)) {
      return this.#decider.take(asks)
    }
    const ticket = new Ticket(asks, awaited, patience, this.#alarm.now())
    const inVain = awaited.filter((ask) => this.#lines.isInVain(ask, patience, ticket.deadlineMs))
    if (inVain.length > 0) return this.#refusedBehind(asks, inVain)
    this.#stand(ticket)
    this.#tickets.add(ticket)
    if (ticket.mayAsk) this.#ask(ticket)
    else {
      this.#idle(ticket)
      this.#askOthers(ticket)
    }
    this.#serve()
    return this.#resultOf(ticket)
  }

  /** Rejects all who wait, and who come later, with ClosedError. What those who are held have been granted is given back. */
  close(): void {
    this.#closed = new ClosedError("The limiter has been closed.")
    for (const ticket of [...this.#tickets]) this.#giveUp(ticket, this.#closed)
  }

  #resultOf(ticket: Ticket): MaybePromise<Decision> {
    const { signal } = ticket.patience
    if (ticket.step !== "done" && signal !== undefined) {
      ticket.atEnd(onAbort(signal, () => this.#giveUp(ticket, signal.reason)))
    }
    return ticket.result()
  }

  /** Whoever's turn has come, in every line in which something has changed. */
  #serve(): void {
    // A store that answers with values is asked again and again in here, and not ever deeper.
    if (this.#isServing || this.#closed !== undefined) return
    this.#isServing = true
    for (const line of this.#due) {
      this.#due.delete(line)
      this.#serveLine(line)
    }
    this.#isServing = false
  }

  #serveLine(line: Line<Ticket>): void {
    const first = line.first?.who
    if (first?.step === "granted" && first.isFirst) {
      this.#goOn(first)
      return
    }
    if (line.asking === line.size) return
    for (let place = line.first; place !== undefined && line.hasWindow; place = place.behind) {
      const { who } = place
      if (who.isAsking) continue
      if (who.step !== "idle") return
      if (who.isParked) {
        // Its turn may have come here: then it stands in its other lines again, or where else it has to wait.
        this.#rejoin(who)
        this.#due.add(line)
        return
      }
      if (!who.mayAsk) return
      this.#ask(who)
      // It was answered at once, and its lines are due again if that has changed anything.
      if (!who.isUnanswered) return
    }
  }

  #ask(ticket: Ticket): void {
    ticket.step = "asking"
    for (const { line } of ticket.places) line.asking++
    // Who waits does not knock: that it has to is no refusal that counts.
    whenDecided(this.#decider.takeIfItFits(ticket.asksNow()), (decision) => {
      this.#answered(ticket, decision)
      this.#serve()
    })
  }

  #answered(ticket: Ticket, decision: Decision): void {
    const { step } = ticket
    if (decision.allowed && step === "asking") this.#granted(ticket, decision)
    else if (decision.allowed) this.#giveBack(decision)
    if (step === "done" || ticket.step === "granted") return
    if (!ticket.waitsOut(decision)) this.#refuse(ticket, decision)
    else {
      for (const granted of stopAsking(ticket)) this.#giveBack(granted)
      if (step === "asking" && ticket.isFirst) this.#refused(ticket, decision)
      else this.#idle(ticket)
    }
  }

  /** It is its turn, and there is nothing for it yet. */
  #refused(ticket: Ticket, decision: Decision): void {
    const untilMs = this.#alarm.now() + ticket.believedMs(decision)
    if (untilMs > ticket.deadlineMs || ticket.isCrowdedOut) {
      this.#refuse(ticket, decision)
      return
    }
    ticket.step = "sleeping"
    ticket.untilMs = untilMs
    this.#park(ticket, ticket.refusedBy(decision) ?? (ticket.awaited[0] as Ask))
    for (const { line } of ticket.places) {
      for (const who of inVainUntil(line, untilMs)) this.#endBehind(who)
      for (let place = line.first?.behind; place !== undefined; place = place.behind)
        this.#parkBehind(place.who)
    }
    this.#wakeAt(untilMs, ticket, () => {
      ticket.step = "idle"
      this.#rejoin(ticket)
      this.#serve()
    })
    this.#tellOfWait(ticket)
  }

  /** In all lines, or in that of a counter for which somebody sleeps who came earlier: there is nothing for others either. */
  #stand(ticket: Ticket): void {
    const blocking = this.#lines.blocking(ticket.awaited, ticket.number)
    standInLine(ticket, blocking === undefined ? ticket.awaited : [blocking], this.#lines)
  }

  /** Goes out of all lines but one, so that nobody waits behind it for a counter that has units. */
  #park(ticket: Ticket, ask: Ask): void {
    if (ticket.standsFor.length === 1 && ticket.standsFor[0] === ask) return
    this.#stepOut(ticket)
    standInLine(ticket, [ask], this.#lines)
  }

  /** The same for who has to wait for another one. */
  #parkBehind(ticket: Ticket): void {
    if (ticket.step !== "idle" || ticket.isParked) return
    const blocking = this.#lines.blocking(ticket.awaited, ticket.number)
    if (blocking !== undefined) this.#park(ticket, blocking)
  }

  /** It may be its turn: it stands where it has to. */
  #rejoin(ticket: Ticket): void {
    this.#stepOut(ticket)
    this.#stand(ticket)
    this.#makeDue(ticket)
  }

  #stepOut(ticket: Ticket): void {
    leaveLines(ticket)
    this.#makeDue(ticket)
    for (const { line } of ticket.places) this.#lines.forgetEmpty(line)
  }

  #granted(ticket: Ticket, decision: Decision): void {
    ticket.step = "granted"
    ticket.granted = decision
    for (const { line } of ticket.places) line.granted()
    this.#makeDue(ticket)
  }

  /** It is the first everywhere, and has what it asked for. */
  #goOn(ticket: Ticket): void {
    const decision = ticket.granted as Decision
    const delayMs = ticket.delayOf(decision)
    const nowMs = this.#alarm.now()
    const untilMs = nowMs + delayMs
    if (delayMs === 0) this.#end(ticket, decision)
    else if (ticket.isCrowdedOut) {
      this.#giveBack(decision)
      this.#endBehind(ticket)
    } else if (untilMs > ticket.deadlineMs) {
      this.#giveBack(decision)
      this.#end(
        ticket,
        refusedForDelay(decision, (check) => ticket.waitsFor(check), ticket.deadlineMs - nowMs),
      )
    } else {
      for (const { line } of ticket.places) line.held.add(ticket)
      this.#leaveLines(ticket)
      ticket.step = "held"
      ticket.untilMs = untilMs
      this.#wakeAt(untilMs, ticket, () => this.#end(ticket, decision))
      this.#tellOfWait(ticket)
    }
  }

  #idle(ticket: Ticket): void {
    ticket.step = "idle"
    if (ticket.isLate) {
      this.#endBehind(ticket)
      return
    }
    this.#parkBehind(ticket)
    this.#makeDue(ticket)
    if (!ticket.isTimed) this.#endInTime(ticket)
    this.#tellOfWait(ticket)
  }

  #endInTime(ticket: Ticket): void {
    ticket.isTimed = true
    // Whose patience ends now may have its turn now.
    this.#wakeAt(ticket.deadlineMs + 1, ticket, () => {
      ticket.isLate = true
      if (ticket.step === "idle" || ticket.step === "vain") this.#endBehind(ticket)
      this.#serve()
    })
  }

  /** A rule that is not waited for refuses at once, also who has to wait for others. */
  #askOthers(ticket: Ticket): void {
    const others = ticket.asks.filter((ask) => !ask.shadow && !ticket.patience.waitsFor(ask))
    if (others.length === 0) return
    whenDecided(this.#decider.peek(others), (decision) => {
      if (decision.allowed || (ticket.step !== "idle" && ticket.step !== "vain")) return
      this.#refuse(ticket, decision)
      this.#serve()
    })
  }

  #giveUp(ticket: Ticket, error: unknown): void {
    if (ticket.step === "done") return
    if (ticket.granted !== undefined) this.#giveBack(ticket.granted)
    this.#leave(ticket)
    ticket.end({ error })
    this.#serve()
  }

  /** It cannot wait until those ahead have gone. */
  #endBehind(ticket: Ticket): void {
    this.#end(ticket, this.#refusedBehind(ticket.asks, ticket.standsFor))
  }

  #refusedBehind(asks: readonly Ask[], behind: readonly Ask[]): Decision {
    const nowMs = this.#alarm.now()
    const waits = behind.map((ask) => this.#lines.waitMs(ask, nowMs))
    return refusedBehind(asks, behind, Math.max(...waits))
  }

  /** It does not wait for this refusal, which counts where refusals do. */
  #refuse(ticket: Ticket, decision: Decision): void {
    if (!countRefusals(ticket.asks)) {
      this.#end(ticket, decision)
      return
    }
    this.#leave(ticket)
    ticket.step = "refused"
    whenDecided(this.#decider.take(ticket.asksNow()), (counted) => {
      // Too late for what has come in the meantime: others may have gone before it.
      if (counted.allowed) this.#giveBack(counted)
      if (ticket.step === "refused") ticket.end({ decision: counted.allowed ? decision : counted })
    })
  }

  #end(ticket: Ticket, decision: Decision): void {
    this.#leave(ticket)
    ticket.end({ decision })
  }

  #leave(ticket: Ticket): void {
    this.#tickets.delete(ticket)
    this.#leaveLines(ticket)
    for (const { line } of ticket.places) {
      line.held.delete(ticket)
      this.#lines.forgetEmpty(line)
    }
  }

  #leaveLines(ticket: Ticket): void {
    if (ticket.step === "held" || ticket.step === "refused") return
    leaveLines(ticket)
    this.#makeDue(ticket)
  }

  #tellOfWait(ticket: Ticket): void {
    ticket.waits((reason) => this.#giveUp(ticket, reason))
  }

  #makeDue({ places }: Ticket): void {
    for (const { line } of places) this.#due.add(line)
  }

  #giveBack(decision: Decision): void {
    // A store that is gone keeps the units until their window has passed: the safe side.
    this.#decider.refund(decision).catch(() => undefined)
  }

  #wakeAt(untilMs: number, ticket: Ticket, then: () => void): void {
    if (untilMs === Number.POSITIVE_INFINITY) return
    this.#alarm.at(untilMs, ticket.timers, then, (error) => this.#giveUp(ticket, error))
  }
}

/** Calls back with the decision, at once where it is there. */
function whenDecided(decision: MaybePromise<Decision>, then: (decision: Decision) => void): void {
  if (decision instanceof Promise) void decision.then(then)
  else then(decision)
}

/** Whether it takes units under a rule that is waited for. */
function isAwaited(ask: Ask, patience: Patience): boolean {
  return !ask.shadow && ask.cost > 0 && patience.waitsFor(ask)
}
