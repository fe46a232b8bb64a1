import {
  algorithmOf,
  type Check,
  type Counted,
  type CounterState,
  type ManualClock,
  type Policy,
  type Store,
  type StoreResult,
} from "@sluice/core"
import { expect } from "expect"

/** Collects the behaviors of a store. */
export interface StoreSuite {
  /** Groups the behaviors that `define` adds. */
  group(name: string, define: () => void): void
  /** Adds a behavior, tested on an empty store with its own clock. */
  behaves(behaviour: string, show: (store: Store, clock: ManualClock) => Promise<void>): void
  /** Adds a behavior for each algorithm, with the name of the policy after the name of the behavior. */
  behavesWithEach(
    behaviour: string,
    show: (store: Store, policy: Policy, clock: ManualClock) => Promise<void>,
  ): void
}

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
export const LOG: Policy = { ...SLIDING, name: "log", counter: "lg-1m", algorithm: "sliding-log" }
export const HOURLY: Policy = { ...SLIDING, name: "hourly", counter: "sl-1h", limit: 15, windowMs: HOUR }
/** One policy for each way to count. Each has room for ten units, which are free again after at most two minutes. */
export const EACH: readonly Policy[] = [
  SLIDING,
  { ...SLIDING, name: "extra", counter: "ex-1m", limit: 7, extra: 3 },
  { ...SLIDING, name: "sub-windows", counter: "sb-1m", buckets: 12 },
  { ...SLIDING, name: "strict", counter: "st-1m", algorithm: "sliding-window-strict", buckets: 60 },
  LOG,
  FIXED,
  FIRST_HIT,
  { ...SLIDING, name: "token", counter: "tk-1m", algorithm: "token-bucket" },
  { ...SLIDING, name: "burst", counter: "tb-1m", algorithm: "token-bucket", limit: 20, burst: 10 },
  { ...SLIDING, name: "periodic", counter: "tp-1m", algorithm: "token-bucket", refill: "periodic" },
  { ...SLIDING, name: "leaky", counter: "lk-1m", algorithm: "leaky-bucket" },
]

/** Returns the policy with room for `units` units. */
export function withCeiling(policy: Policy, units: number): Policy {
  if (policy.burst !== undefined) return { ...policy, limit: 2 * units, burst: units }
  if (policy.extra === undefined) return { ...policy, limit: units }
  const extra = Math.min(units, policy.extra)
  return { ...policy, limit: units - extra, extra }
}

export function isBucket({ algorithm }: Policy): boolean {
  return algorithm === "token-bucket" || algorithm === "leaky-bucket"
}

/** The state of a counter from which nothing was taken. */
export const UNTAKEN: CounterState = { startMs: 0, current: 0, previous: 0 }

/** Returns a check of the client alice. */
export function check(policy: Policy, cost = 1, more: Partial<Check> = {}): Check {
  return { policy, partition: "alice", cost, shadow: false, ...more }
}

/** An answer that includes every counter of its request. */
export interface Looked extends StoreResult {
  readonly checks: readonly Counted[]
}

/**
 * Returns the answers after checking that each includes every counter. A store that does not cache refusals reads all
 * of them.
 */
export function looked(answers: readonly StoreResult[]): readonly Looked[] {
  return answers.map((answer) => {
    const checks = answer.checks.filter((counted) => counted !== undefined)
    expect(checks).toHaveLength(answer.checks.length)
    return { ...answer, checks }
  })
}

/** Takes for one request and returns the answer. */
export async function takeOne(store: Store, ...checks: Check[]): Promise<Looked> {
  const [answer] = looked(await store.take([checks]))
  if (answer === undefined) throw new Error("The store did not return a result for the request.")
  return answer
}

/** Peeks for one request and returns the answer. */
export async function peekOne(store: Store, ...checks: Check[]): Promise<Looked> {
  const [answer] = looked(await store.peek([checks]))
  if (answer === undefined) throw new Error("The store did not return a result for the request.")
  return answer
}

/** Returns the units in a counter, summed over both of its windows. */
export async function countOf(store: Store, policy: Policy, partition = "alice"): Promise<number> {
  const { checks } = await peekOne(store, check(policy, 0, { partition }))
  const { previous, current } = only(checks).state
  return previous + current
}

/** Returns how many of ten units are in use now. */
export async function usedOf(store: Store, policy: Policy): Promise<number> {
  const asked = Array.from({ length: 11 }, (_, cost) => [check(policy, cost)])
  const granted = looked(await store.peek(asked)).filter((answer) => answer.granted)
  return 11 - granted.length
}

/** Returns the counter state after the only check of an answer. */
export function stateOf({ checks }: Looked): CounterState {
  return only(checks).state
}

/** Returns the units in the current window, or in the bucket. */
export function currentOf(checks: readonly Counted[]): number {
  return only(checks).state.current
}

/** Returns the only check of an answer. */
export function only(checks: readonly Counted[]): Counted {
  expect(checks).toHaveLength(1)
  return checks[0] as Counted
}

/** Returns how many milliseconds a client must wait, according to the first check of an answer. */
export function waitOf({ checks, nowMs }: Looked, { policy, cost }: Check): number {
  const { state } = only(checks)
  return algorithmOf(policy).retryAfterMs(state, policy, cost, nowMs)
}
