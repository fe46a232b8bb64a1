import { PERMIT_RETRY_MS } from "../../algorithms/in-flight.ts"
import { algorithmOf, releases } from "../../algorithms/kinds.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"
import type { CounterKey } from "../../stores/store.ts"
import type { Attempt } from "./attempt.ts"
import { Heap } from "./heap.ts"
import type { Line, Ticket } from "./line.ts"
import { mostWaiting, type WaitOptions } from "./wait-options.ts"

/**
 * Maximum number of concurrent store calls of a line after a refusal, which is the batch size of a call to Redis.
 */
const WIDEST = 64

/** The lines of all counters for which requests wait, are being decided or are delayed. */
export class Lines {
  readonly #lines = new Map<string, Line>()
  /** Lines in which a request's turn may have come. */
  readonly #due = new Set<Line>()
  /** The first request of each ready line, in order of arrival. */
  readonly #ready = new Heap<Ticket>(({ number }) => number)

  /** Returns the line of a counter, or undefined if the counter has no line. */
  find({ policy, partition }: CounterKey): Line | undefined {
    // `policy.counter` has a fixed length, so the concatenated key is unambiguous.
    return this.#lines.get(policy.counter + partition)
  }

  /** Returns the line of a counter. Creates the line if necessary. */
  at(counter: CounterKey): Line {
    const found = this.find(counter)
    if (found !== undefined) return found
    const line: Line = {
      name: counter.policy.counter + counter.partition,
      waiting: new Heap(({ number }) => number),
      impatient: new Heap(({ deadlineMs }) => deadlineMs),
      turns: [],
      refunds: [],
      asking: 0,
      refusedAt: 0,
      returnedAt: 0,
      width: Number.POSITIVE_INFINITY,
      fewest: Number.POSITIVE_INFINITY,
      hasUncounted: false,
    }
    this.#lines.set(line.name, line)
    // Mark the line as due, so that it is removed if no request needs it.
    this.#due.add(line)
    return line
  }

  /**
   * True if waiting would be pointless for a request that arrives now. That is the case if too many requests wait for
   * this counter, or if the request stands behind another one for which there are no units before its deadline.
   */
  isInVain(ruleCheck: RuleCheck, { options, deadlineMs, number }: Ticket): boolean {
    const line = this.find(ruleCheck)
    if (line === undefined) return false
    // If the line is empty, even a request that is not allowed to queue calls the store, because there may be enough
    // units.
    const most = Math.max(1, mostWaiting(options, ruleCheck))
    return (
      line.waiting.size + delayedIn(line, options) >= most ||
      (isAhead(line, number) && (emptyUntilMs(line) ?? 0) > deadlineMs)
    )
  }

  /** True if one of the request's counters already delays `maxWaiting` requests. */
  isCrowdedOut({ options, awaited }: Ticket): boolean {
    return awaited.some((ruleCheck) => {
      const line = this.find(ruleCheck)
      return options.countsDelayed !== false && (line?.turns.length ?? 0) >= options.maxWaiting
    })
  }

  /**
   * Returns the minimum wait for this counter if a request arrives now, in milliseconds: 1 or more. The wait for a
   * permit is a hint.
   */
  waitMs(ruleCheck: RuleCheck, nowMs: number): number {
    const line = this.find(ruleCheck)
    const untilMs = line?.untilMs ?? line?.turns[0]?.ticket.untilMs ?? 0
    const leastMs = releases(ruleCheck.policy) ? PERMIT_RETRY_MS : 1
    return Math.max(leastMs, Math.ceil(untilMs - nowMs))
  }

  /** Returns the first rule check for whose counter an earlier request waits; otherwise undefined. */
  waiterBefore({ awaited, number }: Ticket): RuleCheck | undefined {
    return awaited.find((ruleCheck) => isAhead(this.find(ruleCheck), number))
  }

  /**
   * True if an earlier request was refused after this request's store call began. The units granted to this request
   * then belong to the earlier request.
   */
  isOvertaking({ awaited, attempt }: Ticket): boolean {
    const { number } = attempt as Attempt
    return awaited.some((ruleCheck) => (this.find(ruleCheck)?.refusedAt ?? 0) > number)
  }

  /** Puts a request into the line of one of its rule checks, behind all earlier ones. */
  stand(ticket: Ticket, ruleCheck: RuleCheck): Line {
    const line = this.at(ruleCheck)
    // For a new request, the number of waiting requests was already checked.
    if (ticket.isKnown) line.hasUncounted = true
    line.fewest = Math.min(line.fewest, mostWaiting(ticket.options, ruleCheck))
    line.waiting.add(ticket)
    if (ticket.deadlineMs !== Number.POSITIVE_INFINITY) line.impatient.add(ticket)
    if (line.waiting.first === ticket) line.untilMs = undefined
    Object.assign(ticket, { state: "waiting", ruleCheck, line, isKnown: true })
    this.#due.add(line)
    return line
  }

  /** Removes a request from its line; a no-op if the request does not wait. */
  leave(ticket: Ticket): void {
    const { line } = ticket
    if (line === undefined) return
    if (line.waiting.first === ticket) line.untilMs = undefined
    line.waiting.delete(ticket)
    line.impatient.delete(ticket)
    ticket.line = undefined
    this.#due.add(line)
  }

  /**
   * Allows one more concurrent store call in each line of a request that was granted units. The number of calls
   * therefore doubles in each round, so a long line is served fast if there are enough units.
   */
  widen({ awaited }: Ticket): void {
    for (const ruleCheck of awaited) {
      const line = this.find(ruleCheck)
      if (line !== undefined && line.width < WIDEST) line.width++
    }
  }

  /**
   * Allows only one store call at a time in each line of a request that has to wait. `madeAt` is the number of the
   * next attempt, if the request was refused.
   */
  narrow({ awaited }: Ticket, madeAt?: number): void {
    for (const ruleCheck of awaited) {
      const line = this.at(ruleCheck)
      line.width = 1
      line.refusedAt = madeAt ?? line.refusedAt
    }
  }

  makeDue(line: Line): void {
    this.#due.add(line)
  }

  /**
   * Removes one of the due lines, makes its pending refunds, and updates the ready requests. Returns the line, or
   * undefined if no line is due.
   */
  nextDue(): Line | undefined {
    for (const line of this.#due) {
      this.#due.delete(line)
      flush(line)
      if (isReady(line)) this.#ready.add(line.waiting.first as Ticket)
      return line
    }
    return undefined
  }

  /** Removes and returns the earliest request whose turn has come. */
  nextReady(): Ticket | undefined {
    for (let { first } = this.#ready; first !== undefined; { first } = this.#ready) {
      this.#ready.delete(first)
      const { line } = first
      if (line === undefined) continue
      if (isReady(line) && line.waiting.first === first) return first
    }
    return undefined
  }

  /** Removes a line if it is not needed. */
  forget(line: Line): void {
    const { waiting, turns, refunds, asking, name } = line
    const isEmpty = waiting.size + turns.length + refunds.length + asking === 0
    // This line may already have been removed, and the counter may have a new line.
    if (isEmpty && this.#lines.get(name) === line) this.#lines.delete(name)
  }

  /** Gives a delayed request a turn in each of its lines, later than all previous turns. */
  delay(ticket: Ticket): void {
    ticket.turns = ticket.awaited.map((ruleCheck) => {
      const line = this.at(ruleCheck)
      const turn = { ticket, line, refunds: line.refunds.splice(0) }
      line.turns.push(turn)
      return turn
    })
  }

  /** Ends the delay of a request. */
  release(ticket: Ticket): void {
    for (const turn of ticket.turns) {
      const { line } = turn
      line.turns.splice(line.turns.indexOf(turn), 1)
      this.#due.add(line)
    }
    ticket.turns = []
  }

  /**
   * Delays a refund to a leaky bucket until no request has a later turn. If units were refunded sooner, the next
   * request would get the turn of the last one, and both would proceed at the same time. Returns false for counters
   * that are not leaky buckets.
   */
  refundLater(ticket: Ticket, ruleCheck: RuleCheck, refund: () => void): boolean {
    const line = this.find(ruleCheck)
    if (line === undefined || algorithmOf(ruleCheck.policy).delayMs === undefined) return false
    const turn = ticket.turns.find((each) => each.line === line)
    const later = turn === undefined ? undefined : line.turns[line.turns.indexOf(turn) + 1]
    const refunds = later?.refunds ?? line.refunds
    refunds.push(...(turn?.refunds ?? []), refund)
    flush(line)
    return true
  }
}

/** True if a request in the line goes before a request with this number. */
function isAhead(line: Line | undefined, number: number): boolean {
  return (line?.waiting.first?.number ?? number) < number
}

/** Returns the time until which no request in line can be admitted; undefined if unknown. */
export function emptyUntilMs({ untilMs, mayEndSooner }: Line): number | undefined {
  return mayEndSooner ? undefined : untilMs
}

/** True if the first request in the line may call the store now. */
function isReady({ waiting, untilMs, asking, width }: Line): boolean {
  return waiting.size > 0 && untilMs === undefined && asking < width
}

/** Returns how many delayed requests count as waiting under these options. */
function delayedIn({ turns }: Line, { countsDelayed = true }: WaitOptions): number {
  return countsDelayed ? turns.length : 0
}

/** Makes the delayed refunds if no pending request can get a later turn. */
function flush({ asking, refunds }: Line): void {
  if (asking > 0) return
  for (const refund of refunds.splice(0)) refund()
}

/**
 * Returns the requests with too many requests ahead of them, except those that have been the first in this line.
 */
export function crowdedOut(line: Line): readonly Ticket[] {
  const crowded: Ticket[] = []
  // Avoid scanning a long line, because there is rarely such a request.
  if (!line.hasUncounted || line.waiting.size + line.turns.length <= line.fewest) return crowded
  line.hasUncounted = false
  line.fewest = Number.POSITIVE_INFINITY
  let ahead = 0
  for (const ticket of line.waiting.sorted()) {
    const { options, ruleCheck, sleptIn } = ticket
    const most = mostWaiting(options, ruleCheck as RuleCheck)
    if (sleptIn !== line && ahead + delayedIn(line, options) >= most) crowded.push(ticket)
    else {
      ahead++
      line.fewest = Math.min(line.fewest, most)
    }
  }
  return crowded
}
