/** Units that were let in, and when. */
export interface Admission {
  readonly atMs: number
  readonly units: number
}

/** Which stretches are looked at: all of a length, or those that begin at multiples of it since the epoch. */
export interface Stretch {
  /** Whole milliseconds, one after the other; of 0 nothing is kept. */
  readonly lengthMs: number
  readonly isAligned: boolean
}

/** Keeps the most units that came in any stretch of so many milliseconds. */
export class MostIn {
  readonly #lengthMs: number
  readonly #isAligned: boolean
  #recent: Admission[] = []
  /** Where the recent ones begin in the list: taking from its front each time would move all of it. */
  #from = 0
  #sum = 0
  #most = 0
  #trace: readonly Admission[] = []

  constructor({ lengthMs, isAligned }: Stretch) {
    this.#lengthMs = lengthMs
    this.#isAligned = isAligned
  }

  get most(): number {
    return this.#most
  }

  /** What came in the stretch that has most. */
  get trace(): readonly Admission[] {
    return this.#trace
  }

  /** In the order of time. Throws when one is earlier than the one before: then nothing would be proven. */
  add(admission: Admission): void {
    const { atMs, units } = admission
    if (units === 0 || this.#lengthMs === 0) return
    const last = this.#recent.at(-1)
    if (last !== undefined && atMs < last.atMs) throw new Error(`${atMs} is earlier than ${last.atMs}`)
    const beginsMs = this.#isAligned ? atMs - (atMs % this.#lengthMs) : atMs - this.#lengthMs + 1
    for (let first = this.#recent[this.#from]; first !== undefined && first.atMs < beginsMs; ) {
      this.#sum -= first.units
      first = this.#recent[++this.#from]
    }
    if (this.#from > 1_000) {
      this.#recent = this.#recent.slice(this.#from)
      this.#from = 0
    }
    this.#recent.push(admission)
    this.#sum += units
    if (this.#sum <= this.#most) return
    this.#most = this.#sum
    this.#trace = this.#recent.slice(this.#from)
  }
}
