import type { Decider } from "../../decision/decider.ts"
import type { Decision } from "../../decision/decision.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"
import type { Clock } from "../../ground/clock.ts"
import { ClosedError } from "../../ground/errors.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import { onAbort, soon } from "../../ground/time.ts"
import type { CounterKey } from "../../stores/store.ts"
import { Alarm } from "./alarm.ts"
import { Attempt } from "./attempt.ts"
import { Departures } from "./departures.ts"
import { Front } from "./front.ts"
import { Lines } from "./lines.ts"
import { Ticket } from "./ticket.ts"
import { Turns } from "./turns.ts"
import { awaitedOf, isAnsweredAtOnce, type WaitOptions } from "./wait-options.ts"

/**
 * Holds requests until they are admitted, first come, first served. Each counter has a line. A request asks the store
 * when no earlier request waits for one of its counters. While it has to wait, it stands in one line only: the line of
 * the counter that has nothing for it. So it does not delay requests that need other counters.
 *
 * There is no polling. After a refusal a line sleeps as long as the refusal says, by the limiter's clock, or until
 * units of its counter come back. While the store is unavailable or there is no spare capacity, it sleeps for at most a
 * second. Until a request is refused, all ask at once. Answers are processed in the order of asking. If a request was
 * granted units behind one that turns out to be refused, its units are refunded and it waits.
 */
export class WaitingRoom {
  readonly #decider: Decider
  readonly #alarm: Alarm
  readonly #lines = new Lines()
  readonly #turns: Turns
  readonly #departures: Departures
  readonly #front: Front
  #isServing = false
  #closed: ClosedError | undefined

  constructor(decider: Decider, clock: Clock) {
    this.#decider = decider
    this.#alarm = new Alarm(clock)
    this.#turns = new Turns(this.#lines, decider, (counters) => this.wake(counters))
    const parts = { decider, lines: this.#lines, turns: this.#turns, alarm: this.#alarm }
    // Serve only after all requests that leave together have left: the request whose turn has come may be one of them.
    this.#departures = new Departures({ ...parts, left: () => soon(() => this.#serve()) })
    this.#front = new Front({ ...parts, departures: this.#departures, serve: () => this.#serve() })
  }

  /** Number of requests without a decision, including those that ask the store for the first time. */
  get size(): number {
    return this.#departures.size
  }

  get isClosed(): boolean {
    return this.#closed !== undefined
  }

  /**
   * Returns the decision once the request is admitted, or would have to wait longer than `options` allow. Returns a
   * value, not a promise, if the request need not wait and the store returns a value. Throws or rejects with the
   * signal's reason or ClosedError; then nothing stays taken.
   */
  enter(ruleChecks: readonly RuleCheck[], options: WaitOptions): MaybePromise<Decision> {
    if (this.#closed !== undefined) throw this.#closed
    options.signal?.throwIfAborted()
    const awaited = awaitedOf(ruleChecks, options)
    if (isAnsweredAtOnce(ruleChecks, awaited)) return this.#decider.take(ruleChecks)
    const ticket = new Ticket(ruleChecks, awaited, options, this.#alarm.now())
    const inVain = awaited.filter((ruleCheck) => this.#lines.isInVain(ruleCheck, ticket))
    if (inVain.length > 0) return this.#departures.refusalBehind(ruleChecks, inVain)
    this.#departures.arrived(ticket)
    this.#askOrStand(ticket)
    this.#departures.askOthers(ticket)
    this.#serve()
    return this.#resultOf(ticket)
  }

  /** Wakes the lines of these counters, because the counters have units again. */
  wake(counters: readonly CounterKey[]): void {
    for (const counter of counters) {
      const line = this.#lines.find(counter)
      if (line === undefined) continue
      // Requests that are asking right now may get answers from before the units came back.
      line.returnedAt = Attempt.made
      line.untilMs = undefined
      this.#lines.makeDue(line)
    }
    this.#serve()
  }

  /**
   * Switches all waiting requests to the rules now in force, in the same order, as if none had been refused. A request
   * that is being decided switches only if it has to wait.
   */
  turnToNewRules(): void {
    const { present } = this.#departures
    const renewed = present.filter((ticket) => {
      if (ticket.step === "asking") ticket.isOutdated = true
      else if (ticket.step === "waiting") return this.#renew(ticket)
      else if (!ticket.isStillDelayed(ticket.granted as Decision) && ticket.step === "held") {
        this.#departures.end(ticket, ticket.granted as Decision)
      }
      return false
    })
    for (const ticket of renewed) if (!ticket.hasLeft) this.#lineUp(ticket)
    this.#serve()
    // A rule that is not waited for must refuse now, not only when the request's turn comes.
    for (const ticket of present) this.#departures.askOthers(ticket)
  }

  /** Rejects all waiting requests, and all later ones, with ClosedError. Units of held requests are refunded. */
  close(): void {
    this.#closed = new ClosedError("The limiter has been closed.")
    for (const ticket of this.#departures.present) this.#departures.giveUp(ticket, this.#closed)
    // Serve at once: the store may be closed next.
    this.#serve()
  }

  #resultOf(ticket: Ticket): MaybePromise<Decision> {
    const { signal } = ticket.options
    if (ticket.step !== "done" && signal !== undefined) {
      ticket.atEnd(onAbort(signal, () => this.#departures.giveUp(ticket, signal.reason)))
    }
    return ticket.result()
  }

  /** Asks the store, or stands in the line of a counter for which earlier requests wait. */
  #askOrStand(ticket: Ticket): void {
    const before = this.#lines.waiterBefore(ticket)
    if (before === undefined) this.#ask(ticket)
    else this.#stand(ticket, before)
  }

  /** Stands in line, even if it may be its turn. Then it asks after the earlier requests. */
  #lineUp(ticket: Ticket): void {
    this.#stand(ticket, this.#lines.waiterBefore(ticket) ?? (ticket.awaited[0] as RuleCheck))
  }

  #stand(ticket: Ticket, ruleCheck: RuleCheck): void {
    const { untilMs = 0 } = this.#lines.stand(ticket, ruleCheck)
    if (untilMs > ticket.deadlineMs) this.#departures.refuseBehind(ticket)
    else this.#departures.tellOfWait(ticket)
  }

  #ask(ticket: Ticket): void {
    ticket.step = "asking"
    // Having to wait must not count as a refusal.
    const { ruleChecks, onAnswer } = ticket.startAttempt()
    const decision = this.#decider.takeIfItFits(ruleChecks, onAnswer)
    const isFirst = ticket.awaited.every((ruleCheck) => (this.#lines.find(ruleCheck)?.asking ?? 0) === 0)
    if (isFirst && !(decision instanceof Promise)) this.#conclude(ticket, decision)
    else this.#concludeInTurn(ticket, decision)
  }

  /** Concludes after the earlier requests that asked for units of the same counters have been concluded. */
  #concludeInTurn(ticket: Ticket, decision: MaybePromise<Decision>): void {
    const lines = ticket.awaited.map((ruleCheck) => this.#lines.at(ruleCheck))
    const concluded = Promise.all([decision, ...lines.map((line) => line.lastAsked)]).then(([answer]) => {
      for (const line of lines) {
        line.asking--
        this.#lines.makeDue(line)
      }
      this.#conclude(ticket, answer)
      this.#serve()
    })
    for (const line of lines) {
      line.asking++
      line.lastAsked = concluded
      this.#lines.makeDue(line)
    }
  }

  #conclude(ticket: Ticket, decision: Decision): void {
    const { allowed } = decision
    const before = this.#lines.waiterBefore(ticket)
    if (ticket.step !== "asking") {
      // The request has left. A no-op if the decision is a refusal.
      this.#turns.refund(ticket, decision)
    } else if (allowed && !this.#lines.isOvertaking(ticket, ticket.attempt as Attempt)) {
      for (const ruleCheck of ticket.awaited) this.#lines.find(ruleCheck)?.widen()
      this.#departures.goOn(ticket, decision)
    } else if (!allowed && !ticket.waitsOut(decision)) {
      this.#departures.refuse(ticket, decision)
    } else {
      if (allowed) this.#turns.refund(ticket, decision)
      for (const ruleCheck of ticket.awaited)
        this.#lines.at(ruleCheck).narrow(allowed ? undefined : Attempt.made)
      if (ticket.isOutdated) this.#askUnderNewRules(ticket)
      else if (allowed || before !== undefined) this.#lineUp(ticket)
      else this.#sleep(ticket, decision)
    }
  }

  /** Puts the line to sleep: it was the request's turn, but there is nothing for it yet. */
  #sleep(ticket: Ticket, decision: Decision): void {
    const attempt = ticket.attempt as Attempt
    const ruleCheck = attempt.refusedBy(decision, ticket.awaited) ?? (ticket.awaited[0] as RuleCheck)
    const untilMs = this.#alarm.now() + attempt.believedMs(decision)
    const isOld = attempt.number < this.#lines.at(ruleCheck).returnedAt
    if (!isOld && (untilMs > ticket.deadlineMs || this.#departures.isCrowdedOut(ticket))) {
      this.#departures.refuse(ticket, decision)
      return
    }
    const line = this.#lines.stand(ticket, ruleCheck)
    if (!isOld) line.untilMs = untilMs
    ticket.sleptIn = line
    this.#departures.tellOfWait(ticket)
  }

  #askUnderNewRules(ticket: Ticket): void {
    ticket.isOutdated = false
    this.#renew(ticket)
    if (ticket.hasLeft) return
    this.#lineUp(ticket)
    this.#departures.askOthers(ticket)
  }

  /** Switches a request to the rules in force. Returns whether it has to take its place under them. */
  #renew(ticket: Ticket): boolean {
    const ruleChecks = ticket.currentChecks()
    // The function that reads a request is the app's, and may have ended the wait.
    if (ruleChecks === undefined || ticket.hasLeft) return false
    const awaited = awaitedOf(ruleChecks, ticket.options)
    this.#lines.leave(ticket)
    ticket.renew(ruleChecks, awaited)
    if (isAnsweredAtOnce(ruleChecks, awaited)) {
      this.#departures.answer(ticket)
      return false
    }
    // Requests that waited for one counter must not all ask for another at once.
    for (const ruleCheck of awaited) this.#lines.at(ruleCheck).narrow()
    return true
  }

  /** Lets every request ask whose turn has come, in all lines that have changed. */
  #serve(): void {
    // Avoid recursion: a store that returns values would otherwise be asked at ever greater depth.
    if (this.#isServing) return
    this.#isServing = true
    try {
      for (let ticket = this.#front.next(); ticket !== undefined; ticket = this.#front.next()) {
        this.#lines.leave(ticket)
        this.#askOrStand(ticket)
      }
    } finally {
      this.#isServing = false
    }
  }
}
