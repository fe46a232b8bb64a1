import { expect } from "vitest"
import type { Clock } from "../../ground/clock.ts"
import type { Policy } from "../../ground/policy.ts"
import type { Store } from "../../stores/store.ts"
import { Decider } from "../decider.ts"
import type { RuleCheck } from "../rule-check.ts"

export const SECOND = 1_000

/** Returns a rule check of a counter with `limit` units per second, or per longer window if `more` contains one. */
export function ruleCheck(name: string, limit: number, cost = 1, more: Partial<Policy> = {}): RuleCheck {
  const policy = { name, counter: name.padEnd(8), align: "epoch", limit, windowMs: SECOND } as const
  return {
    policy: { ...policy, algorithm: "fixed-window", ...more },
    partition: "",
    cost,
    shadow: false,
    unit: "requests",
    unitCost: cost,
    rejectionMessage: undefined,
    onStoreFailure: "local",
    throttle: { kind: "hard" },
    refusal: undefined,
    field: undefined,
  }
}

/** Returns a decider over a store. The test fails if the store degrades, unless it passes `onDegraded`. */
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
    onFailedAgain() {},
    onTimeouts() {},
  })
}
