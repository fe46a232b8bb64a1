import { expect } from "vitest"
import type { Clock } from "../../ground/clock.ts"
import type { Policy } from "../../ground/policy.ts"
import type { Store } from "../../stores/store.ts"
import { Decider } from "../decider.ts"
import type { RuleCheck } from "../rule-check.ts"

export const SECOND = 1_000

/** Asks for units of a counter of so many in each second, or in each of longer windows. */
export function ruleCheck(name: string, limit: number, cost = 1, more: Partial<Policy> = {}): RuleCheck {
  const policy = { name, counter: name.padEnd(8), align: "epoch", limit, windowMs: SECOND } as const
  return {
    policy: { ...policy, algorithm: "fixed-window", ...more },
    partition: "",
    cost,
    shadow: false,
    unitCost: cost,
    rejectionMessage: undefined,
    onStoreFailure: "local",
    throttle: { kind: "hard" },
    refusal: undefined,
    field: undefined,
  }
}

/** A decider of a store that is not to fail, unless a test says what it is then. */
export function deciderOver(
  store: Store,
  clock: Clock,
  onDegraded: (error: Error) => void = ({ message }) => expect.unreachable(message),
): Decider {
  return new Decider({
    store,
    storeTimeoutMs: SECOND,
    instances: 1,
    clock,
    onDegraded,
    onRecovered() {},
    onStoreError() {},
    onRefundLost() {},
    onTimeouts() {},
  })
}
