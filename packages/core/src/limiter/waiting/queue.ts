/** Who stands in a queue: by the order in which they came. */
export interface Waiter {
  /** The smaller, the earlier it came. */
  readonly number: number
  /** Whether it has been let go already: nobody is put before it any more. */
  readonly isAsking: boolean
}

/** A place in a queue. */
export interface Place<Who extends Waiter, In = Queue<Who>> {
  readonly who: Who
  readonly line: In
  ahead: Place<Who, In> | undefined
  behind: Place<Who, In> | undefined
}

/** Some who wait, one behind the other: out at any place, and in at the end, in constant time. */
export class Queue<Who extends Waiter> {
  first: Place<Who, this> | undefined
  last: Place<Who, this> | undefined
  size = 0

  /** Its place is behind all who came earlier, and behind those who are asking. */
  add(who: Who): Place<Who, this> {
    if (this.last === undefined || isBefore(this.last.who, who)) return this.append(who)
    // Who comes back to its place came early, as a rule.
    let behind = this.first
    while (behind !== undefined && isBefore(behind.who, who)) behind = behind.behind
    return this.#put(who, behind)
  }

  /** Its place is the last. */
  append(who: Who): Place<Who, this> {
    return this.#put(who, undefined)
  }

  remove(place: Place<Who, this>): void {
    const { ahead, behind } = place
    // Who keeps its place for long would keep all who come after it.
    place.ahead = undefined
    place.behind = undefined
    if (ahead === undefined) this.first = behind
    else ahead.behind = behind
    if (behind === undefined) this.last = ahead
    else behind.ahead = ahead
    this.size--
  }

  #put(who: Who, behind: Place<Who, this> | undefined): Place<Who, this> {
    const ahead = behind === undefined ? this.last : behind.ahead
    const place: Place<Who, this> = { who, line: this, ahead, behind }
    if (ahead === undefined) this.first = place
    else ahead.behind = place
    if (behind === undefined) this.last = place
    else behind.ahead = place
    this.size++
    return place
  }
}

function isBefore(one: Waiter, other: Waiter): boolean {
  return one.isAsking || cameBefore(one, other)
}

export function cameBefore(one: Waiter, other: Waiter): boolean {
  return one.number < other.number
}
