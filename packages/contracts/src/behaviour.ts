/** One behavior that an implementation must have, for any test runner: `it(name, show)`. */
export interface Behaviour {
  /** A description of the behavior, which is unique within the contract. */
  readonly name: string
  /** Tests the behavior on a new implementation. Rejects with the error of the expectation that failed. */
  readonly show: () => Promise<void>
  /** Why the implementation is known to lack the behavior. If a deviation is given, `show` need not be run. */
  readonly deviation?: string
}

/** A behavior that an implementation lacks, and the reason. */
export interface Deviation {
  /** The name of the behavior. */
  readonly behaviour: string
  /** The reason, for readers of the list of tests. */
  readonly reason: string
}

/** Collects the behaviors of one contract. */
export class Contract {
  readonly #behaviours: Behaviour[] = []
  readonly #reasons: Map<string, string>
  #group = ""

  constructor(deviations: readonly Deviation[] = []) {
    this.#reasons = new Map(deviations.map(({ behaviour, reason }) => [behaviour, reason]))
  }

  /** Prefixes the names of the behaviors that `define` adds with the name of a group. */
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

  /**
   * Returns all behaviors. Throws if a deviation names an unknown behavior, so that no deviation remains after its
   * behavior is renamed.
   */
  done(): readonly Behaviour[] {
    const names = this.#behaviours.map(({ name }) => name)
    const twice = names.find((name, i) => names.indexOf(name) !== i)
    if (twice !== undefined)
      throw new Error(`Two behaviors have the same name: ${twice}. Rename one of them.`)
    const unknown = [...this.#reasons.keys()].find((name) => !names.includes(name))
    if (unknown === undefined) return this.#behaviours
    throw new Error(
      `A deviation names an unknown behavior: ${unknown}. The known behaviors are:\n${names.join("\n")}`,
    )
  }
}
