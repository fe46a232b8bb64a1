import { expect } from "vitest"
import type { ManualClock } from "../../../packages/core/src/clock.ts"
import type { Policy } from "../../../packages/core/src/policy.ts"
import type { Answer, Check, Counted, Store } from "../../../packages/core/src/stores/store.ts"

/** Registers a behaviour, shown on an empty store and a clock of its own. */
export type Behaves = (behaviour: string, show: (store: Store, clock: ManualClock) => Promise<void>) => void

/** The same for each algorithm; the name of the policy stands behind the behaviour's. */
export type BehavesWithEach = (
  behaviour: string,
  show: (store: Store, policy: Policy, clock: ManualClock) => Promise<void>,
) => void

export const MINUTE: number = 60_000
export const HOUR: number = 3_600_000

export const SLIDING: Policy = {
  name: "sliding",
  counter: "sl-1m",
  algorithm: "sliding-window",
  limit: 10,
  windowMs: MINUTE,
  align: "epoch",
}
export const FIXED: Policy = { ...SLIDING, name: "fixed", counter: "fx-1m", algorithm: "fixed-window" }
export const FIRST_HIT: Policy = { ...FIXED, name: "first-hit", counter: "fh-1m", align: "first-hit" }
export const HOURLY: Policy = { ...SLIDING, name: "hourly", counter: "sl-1h", limit: 15, windowMs: HOUR }
/** One policy of each way to count: ten a minute. */
export const EACH: readonly Policy[] = [SLIDING, FIXED, FIRST_HIT]

/** A check of alice's. */
export function check(policy: Policy, cost = 1, more: Partial<Check> = {}): Check {
  return { policy, partition: "alice", cost, shadow: false, ...more }
}

/** An answer with every counter of its request. */
export interface Looked extends Answer {
  readonly checks: readonly Counted[]
}

/** The answers, each with every counter of its request: where refusals are not remembered a store looks at them all. */
export function looked(answers: readonly Answer[]): readonly Looked[] {
  return answers.map((answer) => {
    const checks = answer.checks.filter((counted) => counted !== undefined)
    expect(checks).toHaveLength(answer.checks.length)
    return { ...answer, checks }
  })
}

/** The answer to one request. */
export async function takeOne(store: Store, ...checks: Check[]): Promise<Looked> {
  const [answer] = looked(await store.take([checks]))
  if (answer === undefined) throw new Error("The store did not answer the request.")
  return answer
}

/** The answer that one request would get. */
export async function peekOne(store: Store, ...checks: Check[]): Promise<Looked> {
  const [answer] = looked(await store.peek([checks]))
  if (answer === undefined) throw new Error("The store did not answer the request.")
  return answer
}

/** What a counter holds, both windows of it. */
export async function countOf(store: Store, policy: Policy, partition = "alice"): Promise<number> {
  const { checks } = await peekOne(store, check(policy, 0, { partition }))
  return only(checks).previous + only(checks).current
}

/** The one check of an answer that has one. */
export function only(checks: readonly Counted[]): Counted {
  expect(checks).toHaveLength(1)
  return checks[0] as Counted
}
