import type { Check, Counted, Refund } from "./store.ts"

/** Returns the refunds of the units that the checks of a request took. */
export function refundsOf(checks: readonly Check[], counted: readonly (Counted | undefined)[]): Refund[] {
  return checks.flatMap(({ policy, partition }, i) => {
    const one = counted[i]
    return one !== undefined && one.taken > 0
      ? [{ policy, partition, units: one.taken, after: one.after ?? one.state }]
      : []
  })
}
