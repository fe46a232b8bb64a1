import { type ManualClock, manualClock, type Store } from "@sluice/core"
import { type Behaviour, Contract, type Deviation } from "./behaviour.ts"
import { adversity } from "./store/adversity.ts"
import { agreement } from "./store/agreement.ts"
import { EACH, type StoreSuite } from "./store/asking.ts"
import { counting } from "./store/counting.ts"
import { keys } from "./store/keys.ts"
import { refusing } from "./store/refusing.ts"
import { returning } from "./store/returning.ts"
import { together } from "./store/together.ts"

/** A store that is to keep the contract. */
export interface StoreUnderTest {
  /**
   * Yields an empty store whose time is this clock. Every window here is a minute or longer, so that what a back end
   * lets expire by a clock of its own is still there at the end of a test.
   */
  create(clock: ManualClock): Store | Promise<Store>
  /** What it is known not to do. Default: nothing. */
  readonly deviations?: readonly Deviation[]
  /**
   * How much to try, above 0 and up to 1, the default: the part of the random traces, and of the thousand who come at once. Less is
   * enough where only the way to the back end is another one.
   */
  readonly effort?: number
}

/**
 * What every store does, {@link Store} in `@sluice/core`: counts by each algorithm, all of a request's checks or none, to each other what is
 * given back, and what a naive model with nothing but sums would answer to hundreds of random stories.
 * @example
 * ```ts
 * import { storeContract } from "@sluice/contracts"
 * import { memoryStore } from "@sluice/core"
 *
 * const behaviours = storeContract({ create: (clock) => memoryStore({ clock }) })
 * // In a test runner: for (const { name, show } of behaviours) it(name, show)
 * for (const { show } of behaviours) await show()
 * ```
 * @throws Error where a deviation is from no behaviour
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
    behavesWithEach(behaviour, show) {
      for (const policy of EACH) {
        suite.behaves(`${behaviour} (${policy.name})`, (store, clock) => show(store, policy, clock))
      }
    },
  }
  counting(suite)
  together(suite, Math.max(100, Math.round(1_000 * effort)))
  refusing(suite)
  returning(suite)
  keys(suite)
  adversity(suite)
  agreement(suite, (trace, show) => contract.add(trace, () => show(create)), effort)
  return contract.done()
}
