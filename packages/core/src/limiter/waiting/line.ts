import type { RuleCheck } from "../../decision/rule-check.ts"
import { Heap } from "./heap.ts"
import { type Place, Queue } from "./queue.ts"
import { mostWaiting, type WaitOptions } from "./wait-options.ts"

/** How many ask at once, at most, after one of them was refused: as many as one call to Redis has. */
const WIDEST = 64

/** A request, as a line knows it. */
export interface Waiter {
  /** The order in which requests come. */
  readonly number: number
  readonly deadlineMs: number
  readonly options: WaitOptions
  /** While it waits: the rule check whose counter it waits for. */
  readonly ruleCheck: RuleCheck | undefined
  /** The line in which it was the first, and was refused. */
  readonly sleptIn: unknown
  /** Whether it has stood in a line or asked the store before. */
  readonly isKnown: boolean
}

/** When a request goes on that was granted units of a line's counter and is held. */
export interface Turn<Who extends Waiter> {
  readonly ticket: Who
  readonly line: Line<Who>
  /** Refunds of requests with earlier turns that have left: to be made when this one leaves, too. */
  readonly returns: (() => void)[]
}

/** The requests that wait for units of one counter, in the order in which they came. */
export class Line<Who extends Waiter> {
  /** The name of its counter. */
  readonly name: string
  readonly waiting: Queue<Who> = new Queue()
  /** The waiting requests that do not wait forever, by their deadlines. */
  readonly impatient: Heap<Who> = new Heap(({ deadlineMs }) => deadlineMs)
  /** Requests that were granted and are held until their turn, the first turn first. */
  readonly held: Queue<Turn<Who>> = new Queue()
  /** Refunds of requests that left before their turn, if no request is held with a later turn. */
  readonly returns: (() => void)[] = []
  /** How many requests ask the store for units of this counter now. */
  asking = 0
  /** Resolves when the last request that asked has been concluded. */
  lastAsked: Promise<void> | undefined
  /** Until when the counter has nothing for the first in line; undefined while that is not known. */
  untilMs: number | undefined
  /** Attempts with a smaller number were made before one was refused last. */
  refusedAt = 0
  /** Attempts with a smaller number may be out of date, because units of the counter came back after them. */
  returnedAt = 0
  /** When its timer goes off, and what stops that. */
  timer: { readonly atMs: number; stop(): void } | undefined
  /** How many requests may ask at once that had to wait. Until one of them is refused, all may. */
  #width = Number.POSITIVE_INFINITY
  /** No waiting request allows fewer to wait. */
  #fewest = Number.POSITIVE_INFINITY
  /** Whether requests have come from other lines, so that for some it is not known whether too many wait ahead of them. */
  #hasUncounted = false

  constructor(name: string) {
    this.name = name
  }

  get first(): Who | undefined {
    return this.waiting.first?.item
  }

  get isEmpty(): boolean {
    return this.waiting.size + this.held.size + this.returns.length + this.asking === 0
  }

  /** Whether it is the turn of the first in line. */
  get isReady(): boolean {
    return this.first !== undefined && this.untilMs === undefined && this.asking < this.#width
  }

  /** Whether a request waits here that came before this one. */
  hasBefore({ number }: Waiter): boolean {
    return this.first !== undefined && this.first.number < number
  }

  /** Returns how many requests wait, as these options count them. */
  count({ countsHeld = true }: WaitOptions): number {
    return this.waiting.size + (countsHeld ? this.held.size : 0)
  }

  /** One more may ask at once, so twice as many with each round: a long line is soon served if there is much to give. */
  widen(): void {
    if (this.#width < WIDEST) this.#width++
  }

  /** A request that asked has to wait: the others ask one by one again. `madeAt` is the number of the next attempt. */
  narrow(madeAt = this.refusedAt): void {
    this.#width = 1
    this.refusedAt = madeAt
  }

  /** Adds a request behind all that came before it. */
  add(ticket: Who, ruleCheck: RuleCheck): Place<Who> {
    let behind: Place<Who> | undefined
    if (!isBefore(this.waiting.last, ticket)) {
      // A request that comes back came early, as a rule.
      behind = this.waiting.first
      while (isBefore(behind, ticket)) behind = behind?.behind
    }
    // A new request has been told whether too many wait.
    if (ticket.isKnown) this.#hasUncounted = true
    if (ticket.deadlineMs !== Number.POSITIVE_INFINITY) this.impatient.add(ticket)
    this.#fewest = Math.min(this.#fewest, mostWaiting(ticket.options, ruleCheck))
    const place = this.waiting.add(ticket, behind)
    if (place.ahead === undefined) this.untilMs = undefined
    return place
  }

  remove(place: Place<Who>): void {
    if (place.ahead === undefined) this.untilMs = undefined
    this.impatient.delete(place.item)
    this.waiting.remove(place)
  }

  /** Returns the requests that have too many ahead of them, and have not been the first here. */
  crowdedOut(): readonly Who[] {
    const crowded: Who[] = []
    // Lines may be long, and there is rarely anything to look for.
    if (!this.#hasUncounted || this.waiting.size + this.held.size <= this.#fewest) return crowded
    this.#hasUncounted = false
    this.#fewest = Number.POSITIVE_INFINITY
    let ahead = 0
    for (let place = this.waiting.first; place !== undefined; place = place.behind) {
      const { options, ruleCheck, sleptIn } = place.item
      const most = mostWaiting(options, ruleCheck as RuleCheck)
      const held = options.countsHeld === false ? 0 : this.held.size
      if (sleptIn !== this && ahead + held >= most) crowded.push(place.item)
      else {
        ahead++
        this.#fewest = Math.min(this.#fewest, most)
      }
    }
    return crowded
  }
}

function isBefore(place: Place<Waiter> | undefined, { number }: Waiter): boolean {
  return place !== undefined && place.item.number < number
}
