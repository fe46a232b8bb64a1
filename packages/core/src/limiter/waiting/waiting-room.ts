import type { Decision } from "../../decision/decision.ts"
import type { Ask } from "../../decision/rule-check.ts"
import type { Clock } from "../../ground/clock.ts"
import { ClosedError } from "../../ground/errors.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import { onAbort, soon } from "../../ground/time.ts"
import type { CounterKey } from "../../stores/store.ts"
import { Alarm } from "./alarm.ts"
import { awaitedOf, isAnsweredAtOnce } from "./awaited.ts"
import { type Deciding, whenDecided } from "./deciding.ts"
import { Departures } from "./departures.ts"
import type { Line } from "./line.ts"
import { Lines } from "./lines.ts"
import { crowdedOut, stopAsking } from "./order.ts"
import { renew } from "./renewal.ts"
import { Slots } from "./slots.ts"
import { type Patience, Ticket } from "./ticket.ts"
import { wakenedBy } from "./wake.ts"

/**
 * Where requests wait until they are admitted, first come first served. There is a line for each counter; a request is in
 * the lines of all its counters at once, and its turn has come when it is the first in each. While one of them has nothing
 * for it, it stands in that line alone: who waits for one counter keeps nobody waiting for another.
 *
 * Nobody polls. The first who is refused sleeps as long as the refusal says, by the limiter's clock, or until units of that
 * counter come back, and asks again; a second at most without the store, or for want of capacity to spare. As long as nobody
 * is refused all ask at once; who is granted while one ahead of it turns out to be refused gives it back and waits on.
 */
export class WaitingRoom {
  readonly #decider: Deciding
  readonly #alarm: Alarm
  readonly #lines = new Lines()
  readonly #slots: Slots
  readonly #departures: Departures
  #isServing = false
  #closed: ClosedError | undefined

  constructor(decider: Deciding, clock: Clock) {
    this.#decider = decider
    this.#alarm = new Alarm(clock)
    this.#slots = new Slots(this.#lines, decider, (counters, inVain) => this.wake(counters, inVain))
    this.#departures = new Departures({
      decider,
      lines: this.#lines,
      slots: this.#slots,
      alarm: this.#alarm,
      left: () => this.#serveSoon(),
    })
  }

  /** How many have no decision yet, those included who are asking for the first time. */
  get size(): number {
    return this.#departures.size
  }

  get isClosed(): boolean {
    return this.#closed !== undefined
  }

  /**
   * The decision, when there is one: it is admitted, or refused for more than `patience` allows. A value where nobody has
   * to wait and the store answers with one. Throws or rejects when it is given up, with the signal's reason or ClosedError;
   * nothing stays taken then.
   */
  enter(asks: readonly Ask[], patience: Patience): MaybePromise<Decision> {
    if (this.#closed !== undefined) throw this.#closed
    patience.signal?.throwIfAborted()
    const awaited = awaitedOf(asks, patience)
    if (isAnsweredAtOnce(asks, awaited)) return this.#decider.take(asks)
    const ticket = new Ticket(asks, awaited, patience, this.#alarm.now())
    const inVain = awaited.filter((ask) => this.#lines.isInVain(ask, patience, ticket.deadlineMs))
    if (inVain.length > 0) return this.#departures.refusalBehind(asks, inVain)
    this.#lines.stand(ticket)
    this.#departures.arrived(ticket)
    if (ticket.mayAsk) this.#ask(ticket)
    else {
      this.#idle(ticket)
      this.#departures.askOthers(ticket)
    }
    this.#serve()
    return this.#resultOf(ticket)
  }

  /** These counters have units again: who sleeps until they have asks again at once. `inVain` could not keep them. */
  wake(counters: readonly CounterKey[], inVain?: Ticket): void {
    for (const counter of counters) {
      const line = this.#lines.find(counter)
      for (const sleeper of line ? wakenedBy(line, counter, inVain) : []) this.#awake(sleeper)
    }
    this.#serve()
  }

  /**
   * Other rules are in force, and all who wait go by them from now on, in the same order, as if nobody had been refused.
   * Who is being decided goes by them when the answer is to wait.
   */
  turnToNewRules(): void {
    const present = this.#departures.present()
    for (const ticket of present) {
      if (ticket.isAsking || ticket.step === "vain") ticket.isOutdated = true
      else renew(ticket, this.#lines, this.#departures)
    }
    this.#serve()
    // Whose turn has not come would hear of a rule that is not waited for only when it has.
    for (const ticket of present) if (ticket.step === "idle") this.#departures.askOthers(ticket)
  }

  /** Rejects all who wait, and who come later, with ClosedError. What those who are held have been granted is given back. */
  close(): void {
    this.#closed = new ClosedError("The limiter has been closed.")
    this.#departures.allGiveUp(this.#closed)
    // At once: the store may be closed next.
    this.#serve()
  }

  #resultOf(ticket: Ticket): MaybePromise<Decision> {
    const { signal } = ticket.patience
    if (ticket.step !== "done" && signal !== undefined) {
      ticket.atEnd(onAbort(signal, () => this.#departures.giveUp(ticket, signal.reason)))
    }
    return ticket.result()
  }

  /** Whoever's turn has come, in every line in which something has changed. */
  #serve(): void {
    // A store that answers with values is asked again and again in here, and not ever deeper.
    if (this.#isServing) return
    this.#isServing = true
    try {
      for (let line = this.#lines.nextDue(); line !== undefined; line = this.#lines.nextDue()) {
        this.#slots.flush(line)
        this.#serveLine(line)
      }
    } finally {
      this.#isServing = false
    }
  }

  /** When all are gone that go together: whose turn has come may be one of them. */
  #serveSoon(): void {
    soon(() => this.#serve())
  }

  #serveLine(line: Line<Ticket>): void {
    const first = line.first?.who
    if (first?.step === "granted" && first.isFirst) {
      this.#departures.goOn(first)
      return
    }
    if (first?.step === "sleeping") {
      this.#waitBehind(first, line)
      return
    }
    if (line.asking === line.size) return
    for (let place = line.first; place !== undefined && line.hasWindow; place = place.behind) {
      const { who } = place
      if (who.isAsking) continue
      if (who.step !== "idle") return
      if (who.isParked) {
        // Its turn may have come here: then it stands in its other lines again, or where else it has to wait.
        this.#lines.stand(who)
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
    const { asks, look } = ticket.tryNow()
    whenDecided(this.#decider.takeIfItFits(asks, look), (decision) => {
      this.#answered(ticket, decision)
      this.#serve()
    })
  }

  #answered(ticket: Ticket, decision: Decision): void {
    const { step } = ticket
    if (decision.allowed) {
      if (step === "asking") this.#granted(ticket, decision)
      else this.#slots.refund(ticket, decision)
    }
    if (ticket.hasLeft || ticket.step === "granted") return
    if (!ticket.waitsOut(decision)) this.#departures.refuse(ticket, decision)
    else {
      this.#stopAsking(ticket)
      if (step === "asking" && ticket.isFirst && ticket.believes(decision)) this.#refused(ticket, decision)
      else this.#idle(ticket)
    }
  }

  /** Nobody behind it is granted anything before it is. */
  #stopAsking(ticket: Ticket): void {
    const stopped = stopAsking(ticket)
    this.#lines.sort(stopped)
    for (const each of stopped) {
      // Who was told before that it waits may have ended others.
      if (each.granted === undefined || each.hasLeft) continue
      this.#slots.refund(each, each.granted)
      each.granted = undefined
      this.#idle(each)
    }
  }

  /** It is its turn, and there is nothing for it yet. */
  #refused(ticket: Ticket, decision: Decision): void {
    const untilMs = this.#alarm.now() + ticket.tried.believedMs(decision)
    if (untilMs > ticket.deadlineMs || ticket.isCrowdedOut) {
      this.#departures.refuse(ticket, decision)
      return
    }
    ticket.step = "sleeping"
    ticket.untilMs = untilMs
    this.#lines.sleep(ticket, ticket.tried.refusedBy(decision, ticket.awaited) ?? (ticket.awaited[0] as Ask))
    this.#lines.makeAllDue(ticket)
    this.#departures.at(untilMs, ticket, ticket.startTurn(), () => {
      this.#awake(ticket)
      this.#serve()
    })
    this.#departures.tellOfWait(ticket)
  }

  #awake(ticket: Ticket): void {
    ticket.endTurn()
    ticket.step = "idle"
    this.#lines.stand(ticket)
  }

  /** The first of a line sleeps, and so there is nothing for those behind it. */
  #waitBehind({ untilMs }: Ticket, line: Line<Ticket>): void {
    for (let who = line.impatient.first; who !== undefined; who = line.impatient.first) {
      if (who.deadlineMs >= untilMs) break
      this.#departures.refuseBehind(who)
    }
    for (const who of crowdedOut(line)) this.#departures.refuseBehind(who)
    for (const who of line.roaming) this.#lines.parkBehind(who)
  }

  #granted(ticket: Ticket, decision: Decision): void {
    ticket.step = "granted"
    ticket.granted = decision
    for (const { line } of ticket.places) line.granted()
    this.#lines.makeAllDue(ticket)
  }

  #idle(ticket: Ticket): void {
    ticket.step = "idle"
    const { isOutdated } = ticket
    if (isOutdated) renew(ticket, this.#lines, this.#departures)
    if (ticket.hasLeft) return
    if (ticket.isLate) {
      this.#departures.refuseBehind(ticket)
      return
    }
    this.#lines.makeAllDue(ticket)
    this.#departures.endInTime(ticket)
    this.#departures.tellOfWait(ticket)
    // By the rules before it has been told already.
    if (isOutdated && !ticket.isFirst) this.#departures.askOthers(ticket)
  }
}
