import type { RuleCheck } from "../../decision/rule-check.ts"
import { Heap } from "./heap.ts"
import { type Place, Queue } from "./queue.ts"
import { mostWaiting, type WaitOptions } from "./wait-options.ts"

/** Number of requests that may ask at once after one of them was refused: as many as one call to Redis holds. */
const WIDEST = 64

/** A request, as seen by a line. */
export interface Waiter {
  /** The order in which requests arrive. */
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

/** The turn of a request that was granted units of a line's counter and is held. */
export interface Turn<Who extends Waiter> {
  readonly ticket: Who
  readonly line: Line<Who>
  /** Refunds of requests with earlier turns that have left. They are made when this request leaves, too. */
  readonly returns: (() => void)[]
}

/** The requests that wait for units of one counter, in order of arrival. */
export class Line<Who extends Waiter> {
  /** The name of its counter. */
  readonly name: string
  readonly waiting: Queue<Who> = new Queue()
  /** The waiting requests that have a deadline, by deadline. */
  readonly impatient: Heap<Who> = new Heap(({ deadlineMs }) => deadlineMs)
  /** Requests that were granted and are held until their turn, earliest turn first. */
  readonly held: Queue<Turn<Who>> = new Queue()
  /**
   * Pending refunds of requests that left before their turn. They are kept here if no request is held with a later
   * turn.
   */
  readonly returns: (() => void)[] = []
  /** Number of requests that are asking the store for units of this counter. */
  asking = 0
  /** Resolves when the last request that asked has been concluded. */
  lastAsked: Promise<void> | undefined
  /** The time until which the counter has nothing for the first in line; undefined if unknown. */
  untilMs: number | undefined
  /**
   * The number that the next attempt had when this request was last refused. Attempts with a smaller number were made before it.
   */
  refusedAt = 0
  /**
   * The number of the next attempt when units of the counter last came back. The answers of earlier attempts may be
   * stale.
   */
  returnedAt = 0
  /** When the timer fires, and a function that stops it. */
  timer: { readonly atMs: number; stop(): void } | undefined
  /** How many requests that had to wait may ask at once. Until one of them is refused, all of them may. */
  #width = Number.POSITIVE_INFINITY
  /** A lower bound: no waiting request has a smaller `maxWaiting`. */
  #fewest = Number.POSITIVE_INFINITY
  /**
   * Whether requests have come from other lines. For some of them it is not known whether too many wait ahead of them.
   */
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

  /** Whether an earlier request than this one waits here. */
  hasBefore({ number }: Waiter): boolean {
    return this.first !== undefined && this.first.number < number
  }

  /** Returns how many requests wait, as counted under these options. */
  count({ countsHeld = true }: WaitOptions): number {
    return this.waiting.size + (countsHeld ? this.held.size : 0)
  }

  /**
   * Lets one more request ask at once. So the number doubles with each round, and a long line is served fast if units
   * suffice.
   */
  widen(): void {
    if (this.#width < WIDEST) this.#width++
  }

  /**
   * Lets requests ask one by one again, because one of them has to wait. `madeAt` is the number of the next attempt.
   */
  narrow(madeAt = this.refusedAt): void {
    this.#width = 1
    this.refusedAt = madeAt
  }

  /** Adds a request behind all earlier ones. */
  add(ticket: Who, ruleCheck: RuleCheck): Place<Who> {
    let behind: Place<Who> | undefined
    if (!isBefore(this.waiting.last, ticket)) {
      // A request that comes back usually arrived early, so search from the front.
      behind = this.waiting.first
      while (isBefore(behind, ticket)) behind = behind?.behind
    }
    // A new request was already checked for too many waiting requests.
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

  /** Returns the requests that have too many ahead of them and have not been first here. */
  crowdedOut(): readonly Who[] {
    const crowded: Who[] = []
    // Lines may be long, and there is rarely anything to find.
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
