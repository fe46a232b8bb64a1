import { Deadlines } from "./deadlines.ts"
import { Queue, type Waiter } from "./queue.ts"

/** Who stands in lines. */
export interface Standing extends Waiter {
  /** Until when it waits, by the limiter's clock; Infinity for as long as it takes. */
  readonly deadlineMs: number
}

/** How many ask at once, at the most, once one of them had to wait: as many as travel to Redis in one call. */
const WIDEST_WINDOW = 64

/** Those who want units of one counter, in the order in which they came. */
export class Line<Who extends Standing> extends Queue<Who> {
  /** Of its counter. */
  readonly name: string
  /** Those in it who are asking the store, or have been granted and wait for the ones ahead: they stand before all others. */
  asking = 0
  /** Those who have left it with what they wanted, and are held until it is their turn to go on; the first to go first. */
  readonly held: Queue<Who> = new Queue()
  /** What gives back the units of those who have left with turns later than all of these. */
  readonly returns: (() => void)[] = []
  /** Those in it who do not wait as long as it takes. */
  readonly impatient: Deadlines<Who> = new Deadlines()
  /** Those in it who stand in other lines too. */
  readonly roaming: Set<Who> = new Set()
  /** Those in it who sleep: more than the first, where one that came earlier has come back and sleeps now too. */
  readonly sleepers: Set<Who> = new Set()
  /** Nobody in it lets fewer wait than so many. */
  fewest: number = Number.POSITIVE_INFINITY
  /** Whether some wait in it of whom it is not known whether too many wait ahead of them. */
  hasUncounted = false
  /** What has been asked by then, which is counted in questions, may be out of date: units of the counter have come back since. */
  returnedAt = 0
  /** While it is not known whether anybody will have to wait all may ask at once. */
  #window = Number.POSITIVE_INFINITY

  constructor(name: string) {
    super()
    this.name = name
  }

  get isEmpty(): boolean {
    return this.size === 0 && this.held.size === 0 && this.returns.length === 0
  }

  /** How many wait. */
  get waiting(): number {
    return this.size - this.asking + this.held.size
  }

  /** Whether one more may ask. */
  get hasWindow(): boolean {
    return this.asking < this.#window
  }

  /** One more may ask at once, so twice as many with each round: where there is much to give a long line is soon served. */
  granted(): void {
    if (this.#window < WIDEST_WINDOW) this.#window++
  }

  /** One by one again, and who waits there now has not been counted. */
  narrow(): void {
    this.#window = 1
    this.hasUncounted = true
  }
}
