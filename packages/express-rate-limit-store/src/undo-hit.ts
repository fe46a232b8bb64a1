import type { Limiter, Store } from "@sluice/core"
import type { RuleExplanation } from "@sluice/core/adapters"
import type { CounterKey, CounterReading } from "@sluice/core/stores"

/**
 * Removes one hit from the current count of a client, if the count is above 0. `decrement` uses this function outside
 * of a request. Rejects with {@link StoreUnavailableError}.
 */
export async function undoHit(limiter: Limiter<string>, store: Store, key: string): Promise<void> {
  const [rule] = (await limiter.explain(key)) as [RuleExplanation]
  const counter = rule.counter as CounterKey
  const { counters } = await store.read([{ ...counter, cost: 1, shadow: false }])
  const [{ state }] = counters as [CounterReading]
  await store.refund([{ ...counter, units: 1, after: state }])
}
