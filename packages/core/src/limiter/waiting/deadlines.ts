/** Who does not wait for ever. */
interface Impatient {
  /** Until when it waits; this does not change. */
  readonly deadlineMs: number
}

/** Some who wait, the least patient first (a binary heap): in and out in a number of steps that grows as the logarithm. */
export class Deadlines<Who extends Impatient> {
  /** Nobody's deadline is before that of its parent, which is at half its index. */
  readonly #heap: Who[] = []
  readonly #indexes = new Map<Who, number>()

  get size(): number {
    return this.#heap.length
  }

  /** Whose patience ends first. */
  get first(): Who | undefined {
    return this.#heap[0]
  }

  add(who: Who): void {
    this.#heap.push(who)
    this.#rise(who, this.#heap.length - 1)
  }

  /** Nothing where it is not among them. */
  delete(who: Who): void {
    const index = this.#indexes.get(who)
    if (index === undefined) return
    this.#indexes.delete(who)
    const last = this.#heap.pop() as Who
    if (last === who) return
    this.#rise(last, this.#sink(index))
  }

  #rise(who: Who, from: number): void {
    let index = from
    while (index > 0) {
      const parent = (index - 1) >> 1
      const above = this.#heap[parent] as Who
      if (above.deadlineMs <= who.deadlineMs) break
      this.#put(above, index)
      index = parent
    }
    this.#put(who, index)
  }

  /** A place without anybody in it goes down to where nobody is below it: yields its index there. */
  #sink(from: number): number {
    let index = from
    for (let child = 2 * index + 1; child < this.#heap.length; child = 2 * index + 1) {
      const [left, right] = [this.#heap[child] as Who, this.#heap[child + 1]]
      const isRight = right !== undefined && right.deadlineMs < left.deadlineMs
      this.#put(isRight ? right : left, index)
      index = isRight ? child + 1 : child
    }
    return index
  }

  #put(who: Who, index: number): void {
    this.#heap[index] = who
    this.#indexes.set(who, index)
  }
}
