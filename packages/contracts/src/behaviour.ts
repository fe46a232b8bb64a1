/** One thing that an implementation has to do, for any test runner: `it(name, show)`. */
export interface Behaviour {
  /** What it does. No other behaviour of the contract has the same name. */
  readonly name: string
  /** Shows it on an implementation of its own, and rejects with what was expected where it is not so. */
  readonly show: () => Promise<void>
  /** Why the implementation is known not to do it; then there is nothing to show. */
  readonly deviation?: string
}

/** A behaviour that an implementation does not have, and why. */
export interface Deviation {
  /** The behaviour's name. */
  readonly behaviour: string
  /** Why it is not so, for who reads the list of tests. */
  readonly reason: string
}

/** The behaviours of one contract, as they are written down. */
export class Contract {
  readonly #behaviours: Behaviour[] = []
  readonly #reasons: Map<string, string>
  #group = ""

  constructor(deviations: readonly Deviation[] = []) {
    this.#reasons = new Map(deviations.map(({ behaviour, reason }) => [behaviour, reason]))
  }

  /** What `define` adds is about the same thing, which their names begin with. */
  group(name: string, define: () => void): void {
    this.#group = `${name}: `
    define()
    this.#group = ""
  }

  add(behaviour: string, show: () => Promise<void>): void {
    const name = this.#group + behaviour
    const deviation = this.#reasons.get(name)
    this.#behaviours.push(deviation === undefined ? { name, show } : { name, show, deviation })
  }

  /** All of them. Throws where a deviation is from none: a name that changes must not leave it behind. */
  done(): readonly Behaviour[] {
    const names = this.#behaviours.map(({ name }) => name)
    const twice = names.find((name, i) => names.indexOf(name) !== i)
    if (twice !== undefined) throw new Error(`Two behaviours have one name: ${twice}`)
    const unknown = [...this.#reasons.keys()].find((name) => !names.includes(name))
    if (unknown === undefined) return this.#behaviours
    throw new Error(`No behaviour has the name of a deviation: ${unknown}. There are:\n${names.join("\n")}`)
  }
}
