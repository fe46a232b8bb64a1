import { describe, expect, it } from "vitest"
import { type ManualClock, manualClock } from "../../packages/core/src/clock.ts"
import type { Policy } from "../../packages/core/src/policy.ts"
import type { Store } from "../../packages/core/src/stores/store.ts"
import { adversity } from "./store/adversity.ts"
import { agreement } from "./store/agreement.ts"
import { EACH } from "./store/asking.ts"
import { counting } from "./store/counting.ts"
import { keys } from "./store/keys.ts"
import { refusing } from "./store/refusing.ts"
import { returning } from "./store/returning.ts"
import { together } from "./store/together.ts"

/** A behaviour that a store does not have, by its name here, and why. */
export interface Deviation {
  readonly behaviour: string
  readonly reason: string
}

export interface StoreUnderTest {
  /**
   * Yields an empty store whose time is this clock. Every window here is a minute or longer, so that what a back end
   * lets expire by a clock of its own is still there at the end of a test.
   */
  create(clock: ManualClock): Store | Promise<Store>
  readonly deviations?: readonly Deviation[]
  /** The part of the random traces to try, 1 by default: less where only the way to the back end is another one. */
  readonly traces?: number
}

/** The behaviour of every store: run it with a function that makes an empty one. */
export function storeContract(name: string, { create, deviations = [], traces = 1 }: StoreUnderTest): void {
  const names = new Set<string>()

  /** A behaviour, shown on a store and a clock of its own. */
  function behaves(behaviour: string, show: (store: Store, clock: ManualClock) => Promise<void>): void {
    names.add(behaviour)
    const deviation = deviations.find((each) => each.behaviour === behaviour)
    if (deviation !== undefined) {
      it.skip(`${behaviour} (it does not: ${deviation.reason})`, () => {})
      return
    }
    it(behaviour, async () => {
      const clock = manualClock()
      const store = await create(clock)
      try {
        await show(store, clock)
      } finally {
        await store.close()
      }
    })
  }

  /** The same for each algorithm. */
  function behavesWithEach(
    behaviour: string,
    show: (store: Store, policy: Policy, clock: ManualClock) => Promise<void>,
  ): void {
    for (const policy of EACH) {
      behaves(`${behaviour} (${policy.name})`, (store, clock) => show(store, policy, clock))
    }
  }

  describe(name, () => {
    counting(behaves, behavesWithEach)
    together(behaves, behavesWithEach)
    refusing(behaves, behavesWithEach)
    returning(behaves, behavesWithEach)
    keys(behaves)
    adversity(behaves, behavesWithEach)
    agreement((trace, show) => {
      names.add(trace)
      const deviation = deviations.find(({ behaviour }) => behaviour === trace)
      if (deviation === undefined) it(trace, () => show(create))
      else it.skip(`${trace} (it does not: ${deviation.reason})`, () => {})
    }, traces)

    it("has no deviation that names no behaviour", () => {
      expect(deviations.filter(({ behaviour }) => !names.has(behaviour))).toEqual([])
    })
  })
}
