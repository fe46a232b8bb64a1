import {
  algorithmOf,
  BoundedTable,
  type CounterKey,
  type CounterState,
  type Policy,
  type Refund,
  type TableEntry,
} from "@sluice/core/stores"

/** Units of one counter that were taken in the same part, so they count alike and expire together. */
interface ChargedPart {
  units: number
  /** The latest state after units were taken. */
  after: CounterState
}

/** The units of one counter, by the part in which they were taken. */
interface ChargedCounter extends TableEntry {
  policy: Policy
  readonly parts: ChargedPart[]
}

/**
 * Units that have been taken, and that are charged to other counters later. They are grouped by counter, and by the
 * part in which they were taken: a window or a sub-window. A bucket has no parts. This class does no I/O.
 */
export class Charges {
  readonly #counters = new BoundedTable<ChargedCounter>(Number.POSITIVE_INFINITY)

  get isEmpty(): boolean {
    return this.#counters.size === 0
  }

  /**
   * Adds units that were taken. `after` is the state after these units were taken. A negative number of units is a
   * refund.
   */
  add({ policy, partition }: CounterKey, units: number, after: CounterState): void {
    let counter = this.#counters.find(policy.counter, partition)
    if (counter === undefined) {
      counter = { policy, partition, usedMs: 0, parts: [] }
      this.#counters.add(counter)
    }
    // The limit may have changed. The algorithm cannot have changed, because it is part of the counter's name.
    counter.policy = policy
    // All charges of a bucket form one part. Refunds of a bucket stay separate, because their effect depends on when
    // the units were taken.
    const isWhole = units > 0 && algorithmOf(policy).filled !== undefined
    const part = counter.parts.find((one) => (isWhole ? one.units > 0 : one.after.startMs === after.startMs))
    if (part === undefined) counter.parts.push({ units, after })
    else {
      part.units += units
      if (after.startMs >= part.after.startMs) part.after = after
    }
  }

  /**
   * Removes the units of all counters, or of at most `most` of them. Returns the units as refunds of negative units, which
   * charge a store (`Store.refund`).
   */
  takeAll(most: number = Number.POSITIVE_INFINITY): Refund[] {
    const all: Refund[] = []
    for (let i = 0; i < most; i++) {
      const counter = this.#counters.next()
      if (counter === undefined) break
      for (const charge of this.take(counter)) all.push(charge)
    }
    return all
  }

  /** Returns the units of one counter in the same way, without removing them. */
  of({ policy, partition }: CounterKey): Refund[] {
    const counter = this.#counters.find(policy.counter, partition)
    return counter === undefined ? [] : chargesOf(counter)
  }

  /** Removes the units of one counter, and returns them as `takeAll` does. */
  take({ policy, partition }: CounterKey): Refund[] {
    const counter = this.#counters.find(policy.counter, partition)
    if (counter === undefined) return []
    this.#counters.delete(counter)
    return chargesOf(counter)
  }
}

function chargesOf({ policy, partition, parts }: ChargedCounter): Refund[] {
  return parts
    .filter(({ units }) => units !== 0)
    .map(({ units, after }) => ({
      policy,
      partition,
      units: -units,
      after: chargedFrom(policy, units, after),
    }))
}

/** Whether the units of a charge, which count from the part in which they were taken, still have an effect. */
export function isStillCounted({ policy, units, after }: Refund, serverMs: number): boolean {
  const algorithm = algorithmOf(policy)
  const unused = algorithm.at(undefined, policy, serverMs)
  const { current, previous } = algorithm.withoutUnits(unused, policy, -Math.abs(units), after, serverMs)
  return current + previous > 0
}

/**
 * Returns the state to which a charge refers. A bucket counts as full at that time. With its actual low level, the
 * charged units would count as already refilled, although the other counter has granted them to other requests.
 */
function chargedFrom(policy: Policy, units: number, after: CounterState): CounterState {
  return (units > 0 ? algorithmOf(policy).filled?.(after, policy) : undefined) ?? after
}
