import { algorithmOf, type CounterState, type Policy } from "@sluice/core/stores"

/** A grant or a refund, with the server's time. */
interface Entry {
  readonly nth: number
  readonly serverMs: number
  readonly policy: Policy
  /** Negative for a refund. */
  readonly units: number
  /** The start of the store's window in which the units were taken. */
  readonly windowMs: number
  /** The process that granted the units. */
  readonly process: number
  /** The `nth` of the grant that is refunded. */
  readonly of?: number
}

/**
 * Collects all grants, and replays each grant with the exact algorithm at its original time. If the algorithm refuses
 * a grant, a limit was exceeded.
 */
export class Witness {
  readonly #entries: Entry[] = []

  granted(entry: Omit<Entry, "of">): void {
    this.#entries.push(entry)
  }

  refunded(nth: number, of: number, units: number, serverMs: number): void {
    const entry = this.#entries.find((one) => one.nth === of) as Entry
    this.#entries.push({ ...entry, nth, serverMs, units: -units, of })
  }

  /** Number of units that were refunded. */
  get refundedUnits(): number {
    return this.#entries.reduce((sum, { units }) => sum + Math.max(0, -units), 0)
  }

  /** Returns the largest number of units that one process or all processes granted in any period of this length. */
  most(lengthMs: number, process?: number): number {
    const grants = this.#sorted().filter(
      (entry) => entry.of === undefined && (process ?? entry.process) === entry.process,
    )
    let [first, units, most] = [0, 0, 0]
    for (const grant of grants) {
      units += grant.units
      while (grant.serverMs - (grants[first] as Entry).serverMs >= lengthMs) {
        units -= (grants[first++] as Entry).units
      }
      most = Math.max(most, units)
    }
    return most
  }

  /** Returns the grants that the exact algorithm refuses. `more` units are added to the capacity of a bucket. */
  excess(more = 0): readonly string[] {
    return this.#run(more).excess
  }

  /** Returns the counter's state after all grants. */
  stateAt(serverMs: number, policy: Policy): CounterState {
    return algorithmOf(policy).at(this.#run(0).state, policy, serverMs)
  }

  #run(more: number): { readonly excess: readonly string[]; readonly state: CounterState | undefined } {
    let state: CounterState | undefined
    const afters = new Map<number, CounterState>()
    const excess: string[] = []
    for (const { nth, serverMs, policy, units, windowMs, of } of this.#sorted()) {
      const roomy = more === 0 ? policy : { ...policy, burst: (policy.burst ?? policy.limit) + more }
      const algorithm = algorithmOf(roomy)
      // A window that starts with the first hit starts at the time in the store's reply.
      const isFirstHit = policy.align === "first-hit"
      if (isFirstHit && of === undefined && state?.startMs !== windowMs) {
        state = { startMs: windowMs, current: 0, previous: 0 }
      }
      if (!isFirstHit) state = algorithm.at(state, roomy, serverMs)
      if (of !== undefined) {
        const after = afters.get(of) as CounterState
        state = algorithm.withoutUnits(state as CounterState, roomy, -units, after, serverMs)
        continue
      }
      const isInWindow = !isFirstHit || serverMs < windowMs + policy.windowMs
      if (!isInWindow || !algorithm.admits(state as CounterState, roomy, units, serverMs)) {
        const { startMs, current, previous } = state as CounterState
        excess.push(
          `${units} at ${serverMs}, limit ${policy.limit}, of ${current} + ${previous} since ${startMs}, window ${windowMs}`,
        )
      }
      state = algorithm.withUnits(state as CounterState, roomy, units, serverMs)
      afters.set(nth, state)
    }
    return { excess, state }
  }

  #sorted(): readonly Entry[] {
    return [...this.#entries].sort((one, other) => one.nth - other.nth)
  }
}
