/** Admitted units and the time of their admission. */
export interface Admission {
  readonly atMs: number
  readonly units: number
}

/**
 * The stretches to examine: all stretches of a length, or only stretches that begin at multiples of it since the
 * epoch.
 */
export interface Stretch {
  /** Number of consecutive whole milliseconds. With 0, nothing is recorded. */
  readonly lengthMs: number
  readonly isAligned: boolean
}

/** A record of the most units that were admitted in any stretch of a given length. */
export class MostIn {
  readonly #lengthMs: number
  readonly #isAligned: boolean
  #recent: Admission[] = []
  /** Index of the first recent admission in the list. Removing from the front each time would move the whole list. */
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

  /** The admissions in the stretch that has the most units. */
  get trace(): readonly Admission[] {
    return this.#trace
  }

  /**
   * Adds an admission. Admissions must be added in the order of their times. Throws if an admission is earlier than
   * the previous one, because the result would then prove nothing.
   */
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
