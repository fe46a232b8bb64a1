/** A run of numbers without gaps. */
type Run = [first: number, last: number]

/** The numbers of a recorder's records, as ascending runs without gaps. There is one run unless records are missing. */
class Numbers {
  readonly #runs: Run[] = []

  /** Adds a number. Returns false if it was added before. */
  add(number: number): boolean {
    const at = this.#indexOf(number)
    const [before, after] = [this.#runs[at - 1], this.#runs[at]]
    if (before !== undefined && number <= before[1]) return false
    const follows = before?.[1] === number - 1
    const precedes = after?.[0] === number + 1
    if (follows && precedes) {
      before[1] = after[1]
      this.#runs.splice(at, 1)
    } else if (follows) before[1] = number
    else if (precedes) after[0] = number
    else this.#runs.splice(at, 0, [number, number])
    return true
  }

  /** How many numbers are missing between the first and the last one. */
  get missing(): number {
    return this.#runs.slice(1).reduce((sum, [first], at) => sum + first - (this.#runs[at] as Run)[1] - 1, 0)
  }

  /** Returns the index of the first run that begins after the number. */
  #indexOf(number: number): number {
    let [low, high] = [0, this.#runs.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#runs[middle] as Run)[0] > number) high = middle
      else low = middle + 1
    }
    return low
  }
}

/**
 * The numbers of all records that were read, to recognize duplicates and losses. Memory grows only with the recorders and
 * with the losses.
 */
export class RecordNumbers {
  readonly #byRecorder = new Map<string, Numbers>()

  /** Adds the number of a record. Returns false if it was added before. */
  add(recorder: string, number: number): boolean {
    let numbers = this.#byRecorder.get(recorder)
    if (numbers === undefined) {
      numbers = new Numbers()
      this.#byRecorder.set(recorder, numbers)
    }
    return numbers.add(number)
  }

  /** How many records are missing between those of each recorder. */
  get missing(): number {
    let sum = 0
    for (const { missing } of this.#byRecorder.values()) sum += missing
    return sum
  }
}
