import type { Store } from "@sluice/core"
import { type ManualClock, manualClock } from "@sluice/core/testing"
import { type Behaviour, Contract, type Deviation } from "./behaviour.ts"
import { adversity } from "./store/adversity.ts"
import { agreement } from "./store/agreement.ts"
import { EACH, type StoreSuite } from "./store/asking.ts"
import { counting } from "./store/counting.ts"
import { holding } from "./store/holding.ts"
import { keys } from "./store/keys.ts"
import { penalizing } from "./store/penalizing.ts"
import { refusing } from "./store/refusing.ts"
import { returning } from "./store/returning.ts"
import { together } from "./store/together.ts"

/** A store to be tested against the contract. */
export interface StoreUnderTest {
  /**
   * Creates an empty store that uses this clock. Every window in the contract lasts at least a minute, so a back end
   * that expires entries by its own clock keeps them until a test ends.
   */
  create(clock: ManualClock): Store | Promise<Store>
  /** Known deviations from the contract. Default: none. */
  readonly deviations?: readonly Deviation[]
  /**
   * A factor above 0 and at most 1 that scales the number of random traces, partitions and concurrent requests.
   * Default: 1. A small value is enough if only the connection to the back end differs from a fully tested store.
   */
  readonly effort?: number
}

/**
 * Returns the behaviors of every store, {@link Store} in `@sluice/core`. A store counts under each algorithm, takes
 * units for all checks of a request or for none, returns refunded units, and renews permits. For hundreds of random traces, the
 * results of the store match a naive model that only adds units.
 * @example
 * ```ts
 * import { storeContract } from "@sluice/contracts"
 * import { memoryStore } from "@sluice/core"
 *
 * const behaviours = storeContract({ create: (clock) => memoryStore({ clock }) })
 * // In a test runner: for (const { name, show } of behaviours) it(name, show)
 * for (const { show } of behaviours) await show()
 * ```
 * @throws Error if a deviation names an unknown behavior
 */
export function storeContract({ create, deviations, effort = 1 }: StoreUnderTest): readonly Behaviour[] {
  const contract = new Contract(deviations)
  const suite: StoreSuite = {
    group: (name, define) => contract.group(name, define),
    behaves(behaviour, show) {
      contract.add(behaviour, async () => {
        const clock = manualClock()
        const store = await create(clock)
        try {
          await show(store, clock)
        } finally {
          await store.close()
        }
      })
    },
    behavesWithEach(behaviour, show, policies = EACH) {
      for (const policy of policies) {
        suite.behaves(`${behaviour} (${policy.name})`, (store, clock) => show(store, policy, clock))
      }
    },
  }
  counting(suite)
  together(suite, Math.max(100, Math.round(1_000 * effort)))
  refusing(suite)
  penalizing(suite)
  returning(suite)
  holding(suite)
  keys(suite, Math.max(100, Math.round(3_000 * effort)))
  adversity(suite)
  agreement(suite, (trace, show) => contract.add(trace, () => show(create)), effort)
  return contract.done()
}
