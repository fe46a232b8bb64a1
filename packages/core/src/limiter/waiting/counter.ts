import type { CounterKey } from "../../stores/store.ts"

/** The name of a counter. */
export function nameOf({ policy, partition }: CounterKey): string {
  // All of a policy's counters have names of one length.
  return policy.counter + partition
}

export function isSame(one: CounterKey, other: CounterKey): boolean {
  return nameOf(one) === nameOf(other)
}
