/** Who stands in lines: by the order in which they came. */
export interface Waiter {
  /** The smaller, the earlier it came. */
  readonly number: number
  /** Whether it has been let go already: nobody is put before it any more. */
  readonly isAsking: boolean
}

/** A place in a line. */
export interface Place<Who extends Waiter> {
  readonly who: Who
  readonly line: Line<Who>
  ahead: Place<Who> | undefined
  behind: Place<Who> | undefined
}

/** How many ask at once, at the most, once one of them had to wait: as many as travel to Redis in one call. */
const WIDEST_WINDOW = 64

/** Those who want units of one counter, in the order in which they came: in and out at any place in constant time. */
export class Line<Who extends Waiter> {
  /** Of its counter. */
  readonly name: string
  first: Place<Who> | undefined
  size = 0
  /** Those in it who are asking the store, or have been granted and wait for the ones ahead: they stand before all others. */
  asking = 0
  /** Those who have left it with what they wanted, and are held until it is their turn to go on; the first to go first. */
  readonly held: Set<Who> = new Set()
  /** How many in it do not wait as long as it takes. */
  impatient = 0
  /** The fewest that anybody in it has let wait. */
  fewest: number = Number.POSITIVE_INFINITY
  #last: Place<Who> | undefined
  /** While it is not known whether anybody will have to wait all may ask at once. */
  #window = Number.POSITIVE_INFINITY

  constructor(name: string) {
    this.name = name
  }

  get isEmpty(): boolean {
    return this.size === 0 && this.held.size === 0
  }

  /** How many wait. */
  get waiting(): number {
    return this.size - this.asking + this.held.size
  }

  /** Whether one more may ask. */
  get hasWindow(): boolean {
    return this.asking < this.#window
  }

  /** Its place is behind all who came earlier, and behind those who are asking. */
  add(who: Who): Place<Who> {
    const last = this.#last
    let behind = last === undefined || isBefore(last.who, who) ? undefined : this.first
    while (behind !== undefined && isBefore(behind.who, who)) behind = behind.behind
    const place: Place<Who> = { who, line: this, ahead: behind === undefined ? last : behind.ahead, behind }
    if (place.ahead === undefined) this.first = place
    else place.ahead.behind = place
    if (behind === undefined) this.#last = place
    else behind.ahead = place
    this.size++
    return place
  }

  remove({ ahead, behind }: Place<Who>): void {
    if (ahead === undefined) this.first = behind
    else ahead.behind = behind
    if (behind === undefined) this.#last = ahead
    else behind.ahead = ahead
    this.size--
  }

  /** One more may ask at once, so twice as many with each round: where there is much to give a long line is soon served. */
  granted(): void {
    if (this.#window < WIDEST_WINDOW) this.#window++
  }

  /** One by one again. */
  refused(): void {
    this.#window = 1
  }
}

function isBefore(one: Waiter, other: Waiter): boolean {
  return one.isAsking || one.number < other.number
}
