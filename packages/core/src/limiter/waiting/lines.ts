import { algorithmOf } from "../../algorithms/kinds.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"
import type { CounterKey } from "../../stores/store.ts"
import type { Attempt } from "./attempt.ts"
import { Heap } from "./heap.ts"
import type { Line, Ticket } from "./line.ts"
import { mostWaiting, type WaitOptions } from "./wait-options.ts"

/**
 * Number of requests that may ask at the same time after one of them was refused: as many as one call to Redis holds.
 */
const WIDEST = 64

/** The lines of all counters for which requests wait, are asking or are delayed. */
export class Lines {
  readonly #lines = new Map<string, Line>()
  /** Lines in which a request's turn may have come. */
  readonly #due = new Set<Line>()
  /** The first request of each ready line, in order of arrival. */
  readonly #ready = new Heap<Ticket>(({ number }) => number)

  /** Returns the line of a counter, if there is one. */
  find({ policy, partition }: CounterKey): Line | undefined {
    // Counter names of a policy have a fixed length, so the key is unambiguous.
    return this.#lines.get(policy.counter + partition)
  }

  /** Returns the line of a counter, and creates it if necessary. */
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
    // Marked as due, so that the line is removed if it turns out not to be needed.
    this.#due.add(line)
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
    return line.waiting.size + delayedIn(line, options) >= most || (line.untilMs ?? 0) > deadlineMs
  }

  /** True if the maximum number of requests is delayed for one of the request's counters. */
  isCrowdedOut({ options, awaited }: Ticket): boolean {
    return awaited.some((ruleCheck) => {
      const line = this.find(ruleCheck)
      return options.countsDelayed !== false && (line?.turns.length ?? 0) >= options.maxWaiting
    })
  }

  /** Returns the minimum wait for this counter of a request that arrives now, in milliseconds: 1 or more. */
  waitMs(ruleCheck: RuleCheck, nowMs: number): number {
    const line = this.find(ruleCheck)
    const untilMs = line?.untilMs ?? line?.turns[0]?.ticket.untilMs ?? 0
    return Math.max(1, Math.ceil(untilMs - nowMs))
  }

  /** Returns the rule check for whose counter an earlier request waits, if there is one. */
  waiterBefore({ awaited, number }: Ticket): RuleCheck | undefined {
    return awaited.find((ruleCheck) => (this.find(ruleCheck)?.waiting.first?.number ?? number) < number)
  }

  /**
   * True if a request that asked earlier was refused after this request had asked. Then the units granted to this
   * request belong to the earlier request.
   */
  isOvertaking({ awaited, attempt }: Ticket): boolean {
    const { number } = attempt as Attempt
    return awaited.some((ruleCheck) => (this.find(ruleCheck)?.refusedAt ?? 0) > number)
  }

  /** Puts a request into the line of one of its rule checks, behind all earlier ones. */
  stand(ticket: Ticket, ruleCheck: RuleCheck): Line {
    const line = this.at(ruleCheck)
    // A new request was already checked for too many waiting requests.
    if (ticket.isKnown) line.hasUncounted = true
    line.fewest = Math.min(line.fewest, mostWaiting(ticket.options, ruleCheck))
    line.waiting.add(ticket)
    if (ticket.deadlineMs !== Number.POSITIVE_INFINITY) line.impatient.add(ticket)
    if (line.waiting.first === ticket) line.untilMs = undefined
    Object.assign(ticket, { state: "waiting", ruleCheck, line, isKnown: true })
    this.#due.add(line)
    return line
  }

  /** Takes a request out of its line; a no-op if it does not wait. */
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
   * Lets one more request ask at the same time in each line of a request that was granted units. So the number doubles
   * with each round, and a long line is served fast if units suffice.
   */
  widen({ awaited }: Ticket): void {
    for (const ruleCheck of awaited) {
      const line = this.find(ruleCheck)
      if (line !== undefined && line.width < WIDEST) line.width++
    }
  }

  /**
   * Lets requests ask one by one again in each line of a request that has to wait. `madeAt` is the number of the next
   * attempt, if the request was refused.
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

  /** Removes and returns one of the due lines. First makes its pending refunds, and notes whether it is ready. */
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
    // This line may have been removed before, and the counter may have a new one.
    if (isEmpty && this.#lines.get(name) === line) this.#lines.delete(name)
  }

  /** Gives a delayed request its turn in each of its lines. It is later than all turns given out before. */
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
   * Makes a refund once no request has a later turn, if the request leaves a leaky bucket. If units were refunded
   * sooner, the next request would get the turn of the last one, and both would go on at the same time. Returns false
   * for other counters.
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

/** True if the first request in the line may ask now. */
function isReady({ waiting, untilMs, asking, width }: Line): boolean {
  return waiting.size > 0 && untilMs === undefined && asking < width
}

/** Returns how many delayed requests count as waiting under these options. */
function delayedIn({ turns }: Line, { countsDelayed = true }: WaitOptions): number {
  return countsDelayed ? turns.length : 0
}

/** Makes the refunds that were kept because another request might have got a later turn. */
function flush({ asking, refunds }: Line): void {
  if (asking > 0) return
  for (const refund of refunds.splice(0)) refund()
}

/** Returns the requests that have too many ahead of them and have not been first here. */
export function crowdedOut(line: Line): readonly Ticket[] {
  const crowded: Ticket[] = []
  // Lines may be long, and there is rarely anything to find.
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
