import type { Decider } from "../../decision/decider.ts"
import type { Decision } from "../../decision/decision.ts"
import { countRefusals } from "../../decision/penalties.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"
import { type Clock, soundTime } from "../../ground/clock.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import { onAbort, soon } from "../../ground/time.ts"
import type { CounterKey } from "../../stores/store.ts"
import { callAt } from "./alarm.ts"
import { type Attempt, longestRefusal, nextAttempt } from "./attempt.ts"
import type { Line, Ticket } from "./line.ts"
import { crowdedOut, emptyUntilMs, Lines } from "./lines.ts"
import { refusedBehind, refusedForDelay } from "./refused.ts"
import {
  attemptOf,
  createTicket,
  currentChecks,
  delayOf,
  finish,
  hasLeft,
  isStillDelayed,
  isUnasked,
  resultOf,
  waitsOut,
  whenDone,
} from "./ticket.ts"
import { awaitedOf, isAnsweredAtOnce, type WaitOptions } from "./wait-options.ts"

/**
 * Lets requests wait until they are admitted, by priority and then first come, first served. Each counter has a line.
 * A request calls the store when no request ahead of it waits for one of its counters. A waiting request is in only one
 * line, the line of the counter that has no units for it. Therefore it does not delay requests that need other counters.
 *
 * After a refusal, a line sleeps for the retry time, by the limiter's clock, or until units of its counter become
 * available. While the store is unavailable or there is no spare capacity, the line sleeps for at most a second. Only
 * a line that waits for permits polls, because other processes may release permits at any time. Until a request is
 * refused, all requests call the store at the same time. Results are processed in the order of the calls. If units were
 * granted to a request behind a refused one, these units are refunded and the request waits.
 *
 * A leaky bucket assigns turns. A request whose units were granted is delayed until its turn.
 */
export class WaitingRoom {
  readonly #decider: Decider
  readonly #clock: Clock
  readonly #lines = new Lines()
  /** The undecided requests, in order of arrival. */
  readonly #present = new Set<Ticket>()
  #isServing = false

  constructor(decider: Decider, clock: Clock) {
    this.#decider = decider
    this.#clock = clock
  }

  /** Number of undecided requests, including requests whose first store call is pending. */
  get size(): number {
    return this.#present.size
  }

  /**
   * Returns the decision once the request is admitted, or is refused because it would have to wait longer than
   * `options` allow. Returns a value, not a promise, if the request need not wait and the store returns a value. If
   * the signal aborts or `leave` is called, throws or rejects with their reason, and no units stay taken.
   */
  enter(ruleChecks: readonly RuleCheck[], options: WaitOptions): MaybePromise<Decision> {
    const { signal } = options
    signal?.throwIfAborted()
    const awaited = awaitedOf(ruleChecks, options)
    if (isAnsweredAtOnce(ruleChecks, awaited)) return this.#decider.take(ruleChecks)
    const ticket = createTicket(ruleChecks, awaited, options, soundTime(this.#clock))
    const inVain = awaited.filter((ruleCheck) => this.#lines.isInVain(ruleCheck, ticket))
    if (inVain.length > 0) return this.#refusalBehind(ruleChecks, inVain)
    this.#present.add(ticket)
    this.#askOrStand(ticket)
    this.#askOthers(ticket)
    this.#serve()
    if (ticket.state !== "done" && signal !== undefined) {
      whenDone(
        ticket,
        onAbort(signal, () => this.#giveUp(ticket, signal.reason)),
      )
    }
    return resultOf(ticket)
  }

  /** Wakes the lines of these counters, because the counters have units again. */
  wake(counters: readonly CounterKey[]): void {
    for (const counter of counters) {
      const line = this.#lines.find(counter)
      if (line === undefined) continue
      // Pending store calls may have results from before the units became available.
      line.returnedAt = nextAttempt()
      line.untilMs = undefined
      this.#lines.makeDue(line)
    }
    this.#serve()
  }

  /**
   * Switches all waiting requests to the rules now in force. They keep their order, as if no request had been
   * refused. A request that is being decided switches only if it has to wait.
   */
  turnToNewRules(): void {
    const present = [...this.#present]
    const renewed = present.filter((ticket) => {
      if (ticket.state === "asking") ticket.isOutdated = true
      else if (ticket.state === "waiting") return this.#renew(ticket)
      else if (ticket.state === "delayed") this.#endIfNotDelayed(ticket, ticket.granted as Decision)
      return false
    })
    for (const ticket of renewed) if (!hasLeft(ticket)) this.#lineUp(ticket)
    this.#serve()
    // A rule for which the request does not wait must refuse it now, not only when its turn comes.
    for (const ticket of present) this.#askOthers(ticket)
  }

  /** Lets a delayed request proceed if the rules in force no longer delay it. */
  #endIfNotDelayed(ticket: Ticket, granted: Decision): void {
    // The app's function that reads the request may end the wait.
    if (!isStillDelayed(ticket, granted) && !hasLeft(ticket)) this.#end(ticket, granted)
  }

  /** Rejects all waiting requests with this error, and refunds the units of delayed requests. */
  close(error: Error): void {
    for (const ticket of this.#present) this.#giveUp(ticket, error)
    // Serve the lines immediately, because the store may be closed next.
    this.#serve()
  }

  /** Calls the store for a request, or puts the request into the line of a counter for which earlier requests wait. */
  #askOrStand(ticket: Ticket): void {
    const before = this.#lines.waiterBefore(ticket)
    if (before === undefined) this.#ask(ticket)
    else this.#stand(ticket, before)
  }

  /**
   * Puts a request into a line, even if its turn may have come, so that it calls the store after the earlier
   * requests.
   */
  #lineUp(ticket: Ticket): void {
    this.#stand(ticket, this.#lines.waiterBefore(ticket) ?? (ticket.awaited[0] as RuleCheck))
  }

  #stand(ticket: Ticket, ruleCheck: RuleCheck): void {
    const line = this.#lines.stand(ticket, ruleCheck)
    if ((emptyUntilMs(line) ?? 0) > ticket.deadlineMs) this.#refuseBehind(ticket)
    else this.#announce(ticket)
  }

  #ask(ticket: Ticket): void {
    ticket.state = "asking"
    const attempt = attemptOf(ticket, soundTime(this.#clock))
    // Use `takeIfItFits`, because a request that has to wait must not count as refused.
    const decision = this.#decider.takeIfItFits(attempt.ruleChecks, (_asked, { nowMs }) => {
      attempt.answeredMs = nowMs
    })
    const isFirst = ticket.awaited.every((ruleCheck) => (this.#lines.find(ruleCheck)?.asking ?? 0) === 0)
    if (isFirst && !(decision instanceof Promise)) this.#conclude(ticket, decision)
    else this.#concludeInTurn(ticket, decision)
  }

  /** Processes the result after the results of all earlier store calls for the same counters. */
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
    if (ticket.state !== "asking") {
      // The request has left, so refund its units. The refund is a no-op if the decision is a refusal.
      this.#refund(ticket, decision)
    } else if (allowed && !this.#lines.isOvertaking(ticket)) {
      this.#lines.widen(ticket)
      this.#goOn(ticket, decision)
    } else if (!allowed && !waitsOut(ticket, decision)) {
      this.#refuse(ticket, decision)
    } else {
      if (allowed) this.#refund(ticket, decision)
      this.#lines.narrow(ticket, allowed ? undefined : nextAttempt())
      if (ticket.isOutdated) this.#askUnderNewRules(ticket)
      else if (allowed || before !== undefined) this.#lineUp(ticket)
      else this.#sleep(ticket, decision)
    }
  }

  /** Puts the line to sleep, because there are no units yet for the request whose turn it is. */
  #sleep(ticket: Ticket, decision: Decision): void {
    const attempt = ticket.attempt as Attempt
    const { ruleCheck, trustedMs, mayEndSooner } = longestRefusal(attempt, decision, ticket.awaited)
    const nowMs = soundTime(this.#clock)
    // Without a known end, call the store for the last time at the deadline.
    const canRetry = mayEndSooner && nowMs < ticket.deadlineMs
    const untilMs = Math.min(nowMs + trustedMs, canRetry ? ticket.deadlineMs : Number.POSITIVE_INFINITY)
    const isOld = attempt.number < this.#lines.at(ruleCheck).returnedAt
    if (!isOld && (untilMs > ticket.deadlineMs || this.#lines.isCrowdedOut(ticket))) {
      this.#refuse(ticket, decision)
      return
    }
    const line = this.#lines.stand(ticket, ruleCheck)
    if (!isOld) Object.assign(line, { untilMs, mayEndSooner })
    ticket.sleptIn = line
    this.#announce(ticket)
  }

  #askUnderNewRules(ticket: Ticket): void {
    ticket.isOutdated = false
    this.#renew(ticket)
    if (hasLeft(ticket)) return
    this.#lineUp(ticket)
    this.#askOthers(ticket)
  }

  /**
   * Switches a request to the rules in force. Returns false if the rules are unknown, or if the request has left. If the
   * request does not wait under the new rules, it leaves.
   */
  #renew(ticket: Ticket): boolean {
    const ruleChecks = currentChecks(ticket)
    // The app's function that reads the request may have ended the wait.
    if (ruleChecks === undefined || hasLeft(ticket)) return false
    const awaited = awaitedOf(ruleChecks, ticket.options)
    this.#lines.leave(ticket)
    Object.assign(ticket, { ruleChecks, awaited, attempt: undefined })
    ticket.options.onRulesChanged?.()
    if (isAnsweredAtOnce(ruleChecks, awaited)) this.#leaveAsking(ticket)
    // Requests that waited for one counter must not all call the store for another counter at the same time.
    else this.#lines.narrow(ticket)
    return true
  }

  /** Calls the store for every request whose turn has come, in all lines that have changed. */
  #serve(): void {
    // One of the app's functions may run here and end another wait. A nested call would call the store for later
    // requests before the current request has its result.
    if (this.#isServing) return
    this.#isServing = true
    try {
      for (let ticket = this.#next(); ticket !== undefined; ticket = this.#next()) {
        this.#lines.leave(ticket)
        this.#askOrStand(ticket)
      }
    } finally {
      this.#isServing = false
    }
  }

  /** Processes the lines that have changed, and returns the earliest request whose turn has come. */
  #next(): Ticket | undefined {
    for (let line = this.#lines.nextDue(); line !== undefined; line = this.#lines.nextDue()) {
      if (line.untilMs !== undefined) {
        this.#refuseImpatient(line, emptyUntilMs(line))
        for (const ticket of crowdedOut(line)) this.#refuseBehind(ticket)
      }
      this.#setTimer(line)
      this.#lines.forget(line)
    }
    return this.#lines.nextReady()
  }

  /** Refuses the requests whose deadline is before the given time. Default: now. */
  #refuseImpatient({ impatient }: Line, beforeMs = soundTime(this.#clock)): void {
    for (
      let { first } = impatient;
      first !== undefined && first.deadlineMs < beforeMs;
      { first } = impatient
    ) {
      this.#refuseBehind(first)
    }
  }

  /**
   * Sets the timer of a line. The timer fires when the line wakes. It also fires when a request's deadline passes, if
   * a store call is pending or the time of the next units is unknown.
   */
  #setTimer(line: Line): void {
    const { untilMs = Number.POSITIVE_INFINITY, impatient, asking, timer } = line
    const mayEndSooner = line.untilMs === undefined ? asking > 0 : line.mayEndSooner
    // Add a millisecond, because a request whose deadline is right now may still get its turn now.
    const atMs = mayEndSooner && impatient.first ? Math.min(untilMs, impatient.first.deadlineMs + 1) : untilMs
    if (atMs === timer?.atMs) return
    timer?.stop()
    line.timer = undefined
    if (atMs === Number.POSITIVE_INFINITY) return
    const goOff = () => {
      line.timer = undefined
      if (line.untilMs === undefined) this.#refuseImpatient(line)
      if (atMs === line.untilMs) line.untilMs = undefined
      this.#lines.makeDue(line)
      this.#serve()
    }
    const fail = (error: unknown) => {
      line.timer = undefined
      const waiting = line.untilMs === undefined ? impatient.first : line.waiting.first
      if (waiting !== undefined) this.#giveUp(waiting, error)
    }
    line.timer = { atMs, stop: callAt(this.#clock, atMs, goOff, fail) }
  }

  /** Processes a grant. The request proceeds, is delayed until its turn, or is refused because of its delay. */
  #goOn(ticket: Ticket, decision: Decision): void {
    ticket.granted = decision
    const delayMs = delayOf(ticket, decision)
    // The app's function that reads the request may have ended the wait.
    if (ticket.state === "done") return
    const nowMs = soundTime(this.#clock)
    const untilMs = nowMs + delayMs
    if (delayMs === 0) this.#end(ticket, decision)
    else if (this.#lines.isCrowdedOut(ticket)) {
      this.#refund(ticket, decision)
      this.#end(ticket, this.#refusalBehind(ticket.ruleChecks, ticket.awaited))
    } else if (untilMs > ticket.deadlineMs) {
      const refused = refusedForDelay(decision, ticket.awaited, ticket.deadlineMs - nowMs)
      this.#refund(ticket, decision)
      this.#end(ticket, refused)
    } else {
      this.#lines.delay(ticket)
      Object.assign(ticket, { state: "delayed", untilMs })
      const go = () => {
        this.#end(ticket, decision)
        this.#serveSoon()
      }
      whenDone(
        ticket,
        callAt(this.#clock, untilMs, go, (error) => this.#giveUp(ticket, error)),
      )
      this.#announce(ticket)
    }
  }

  /**
   * Refuses a request that does not wait after this refusal. If a rule counts refusals, calls the store again so that
   * this refusal counts.
   */
  #refuse(ticket: Ticket, decision: Decision): void {
    if (countRefusals(ticket.ruleChecks)) this.#leaveAsking(ticket, decision)
    else this.#end(ticket, decision)
  }

  /**
   * Refuses a request immediately if it does not wait for the refusing rule. This also applies to requests in line
   * that have not called the store yet.
   */
  #askOthers(ticket: Ticket): void {
    if (!isUnasked(ticket)) return
    const others = ticket.ruleChecks.filter(
      (ruleCheck) => !ruleCheck.shadow && !ticket.options.waitsFor(ruleCheck),
    )
    whenDecided(this.#decider.peek(others), (decision) => {
      // If the request has called the store in the meantime, the result of that call is newer.
      if (decision.allowed || !isUnasked(ticket)) return
      this.#refuse(ticket, decision)
      this.#serveSoon()
    })
  }

  /** Refuses a request that cannot wait until the requests ahead of it have left the line. */
  #refuseBehind(ticket: Ticket): void {
    this.#end(ticket, this.#refusalBehind(ticket.ruleChecks, [ticket.ruleCheck as RuleCheck]))
  }

  /** Returns the refusal of a request that would have to wait for the counters of the rule checks `behind`. */
  #refusalBehind(ruleChecks: readonly RuleCheck[], behind: readonly RuleCheck[]): Decision {
    const nowMs = soundTime(this.#clock)
    const waits = behind.map((ruleCheck) => this.#lines.waitMs(ruleCheck, nowMs))
    return refusedBehind(ruleChecks, behind, Math.max(...waits))
  }

  /** Ends a request's wait without a decision, and refunds the units that were granted to it. */
  #giveUp(ticket: Ticket, error: unknown): void {
    if (ticket.state === "done") return
    if (ticket.granted !== undefined) this.#refund(ticket, ticket.granted)
    this.#leave(ticket)
    finish(ticket, { error })
    this.#serveSoon()
  }

  /** Calls the request's `onWait` when the request has to wait for the first time. The callback may end the wait. */
  #announce(ticket: Ticket): void {
    const { options, isAnnounced } = ticket
    ticket.isAnnounced = true
    if (isAnnounced || options.onWait === undefined) return
    whenDone(
      ticket,
      options.onWait((reason) => this.#giveUp(ticket, reason)),
    )
  }

  /**
   * Removes a request from its line, and calls the store for all its checks. The wait ends with the result. If
   * `refusal` is given and the result is an admission, the units are refunded and the wait ends with `refusal`,
   * because other requests may have been first.
   */
  #leaveAsking(ticket: Ticket, refusal?: Decision): void {
    this.#leave(ticket)
    ticket.state = "leaving"
    const { ruleChecks } = attemptOf(ticket, soundTime(this.#clock))
    whenDecided(this.#decider.take(ruleChecks), (answer) => {
      const isTooLate = answer.allowed && refusal !== undefined
      const isLeaving = ticket.state === "leaving"
      if (isTooLate || !isLeaving) this.#refund(ticket, answer)
      if (isLeaving) finish(ticket, { decision: isTooLate ? refusal : answer })
    })
  }

  #end(ticket: Ticket, decision: Decision): void {
    this.#leave(ticket)
    finish(ticket, { decision })
  }

  #leave(ticket: Ticket): void {
    this.#present.delete(ticket)
    this.#lines.leave(ticket)
    this.#lines.release(ticket)
  }

  /** Refunds units that were granted to a request that does not proceed. */
  #refund(ticket: Ticket, decision: Decision): void {
    const kept = ticket.awaited.filter((ruleCheck) =>
      this.#lines.refundLater(ticket, ruleCheck, () =>
        this.#refundCounters(decision, (counter) => isSame(ruleCheck, counter)),
      ),
    )
    this.#refundCounters(decision, (counter) => !kept.some((ruleCheck) => isSame(ruleCheck, counter)))
  }

  #refundCounters(decision: Decision, isMeant: (counter: CounterKey) => boolean): void {
    const refunding = this.#decider.corrections.refundInBackground(decision, isMeant)
    void refunding.then((counters) => this.wake(counters))
  }

  /**
   * Serves the lines after all requests that leave together have left, because the request whose turn has come may be
   * one of them.
   */
  #serveSoon(): void {
    soon(() => this.#serve())
  }
}

function isSame(one: CounterKey, other: CounterKey): boolean {
  return one.policy.counter === other.policy.counter && one.partition === other.partition
}

/** Calls `then` with the decision, synchronously if it is available. */
function whenDecided(decision: MaybePromise<Decision>, then: (decision: Decision) => void): void {
  if (decision instanceof Promise) void decision.then(then)
  else then(decision)
}
