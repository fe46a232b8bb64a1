import { algorithmOf, type CounterKey, type CounterState, type Refund } from "@sluice/core/stores"

/** Units of one counter that were taken in one part: they count alike, and expire together. */
interface ChargedPart {
  units: number
  /** The latest state after units were taken. */
  after: CounterState
}

interface Counter {
  key: CounterKey
  readonly parts: ChargedPart[]
}

/**
 * Units that have been taken, and that are charged to other counters later: by counter, and by the part in which they
 * were taken. A part is a window or a sub-window. A bucket has no parts. Does no I/O.
 */
export class Charges {
  readonly #counters = new Map<string, Map<string, Counter>>()

  get isEmpty(): boolean {
    return this.#counters.size === 0
  }

  /** Adds units that were taken and left the state `after`. A negative number is a refund of such units. */
  add(key: CounterKey, units: number, after: CounterState): void {
    const { policy, partition } = key
    let ofPolicy = this.#counters.get(policy.counter)
    if (ofPolicy === undefined) {
      ofPolicy = new Map()
      this.#counters.set(policy.counter, ofPolicy)
    }
    let counter = ofPolicy.get(partition)
    if (counter === undefined) {
      counter = { key, parts: [] }
      ofPolicy.set(partition, counter)
    }
    // The limit may have changed. The algorithm is part of the counter's name.
    counter.key = key
    // Charges of a bucket are one part. What its refunds are worth depends on when the units were taken.
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
    let counters = 0
    for (const ofPolicy of this.#counters.values()) {
      for (const { key } of ofPolicy.values()) {
        if (counters++ >= most) return all
        for (const charge of this.take(key)) all.push(charge)
      }
    }
    return all
  }

  /** Returns the units of one counter in the same way, and keeps them. */
  of({ policy, partition }: CounterKey): Refund[] {
    const counter = this.#counters.get(policy.counter)?.get(partition)
    return counter === undefined ? [] : chargesOf(counter)
  }

  /** Removes the units of one counter, and returns them in the same way. */
  take(key: CounterKey): Refund[] {
    const charges = this.of(key)
    const ofPolicy = this.#counters.get(key.policy.counter)
    ofPolicy?.delete(key.partition)
    if (ofPolicy?.size === 0) this.#counters.delete(key.policy.counter)
    return charges
  }
}

function chargesOf({ key, parts }: Counter): Refund[] {
  const { policy, partition } = key
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
 * Returns the state that a charge is for. A bucket counts as full at that time. With its own low level, the charged
 * units would seem to have come back already, although the other counter has let other requests use them.
 */
function chargedFrom(policy: CounterKey["policy"], units: number, after: CounterState): CounterState {
  return (units > 0 ? algorithmOf(policy).filled?.(after, policy) : undefined) ?? after
}
