import { expect } from "vitest"
import type { Clock } from "../../ground/clock.ts"
import { PERMITS, type Policy } from "../../ground/policy.ts"
import type { Store } from "../../stores/store.ts"
import { Decider, type DeciderOptions } from "../decider.ts"
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

/** Returns a check of one permit of a rule that allows `limit` at a time, with a hold of two seconds. */
export function permitCheck(name: string, limit: number, more: Partial<Policy> = {}): RuleCheck {
  const check = ruleCheck(name, limit, 1, { algorithm: "in-flight", ...more })
  return { ...check, unit: PERMITS, unitCost: 1 }
}

/** Returns a decider over a store. The test fails if the store degrades, unless it passes `onDegraded`. */
export function deciderOver(
  store: Store,
  clock: Clock,
  onDegraded: (error: Error) => void = ({ message }) => expect.unreachable(message),
  more: Partial<DeciderOptions> = {},
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
    onCorrected() {},
    onPermitsLost: () => undefined,
    onFailedAgain() {},
    onTimeouts() {},
    ...more,
  })
}
