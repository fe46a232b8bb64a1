import type { Store } from "@sluice/core"
import {
  algorithmOf,
  type Check,
  type Counted,
  type CounterState,
  type Policy,
  peekStore,
  type StoreResult,
} from "@sluice/core/stores"
import type { ManualClock } from "@sluice/core/testing"
import { expect } from "expect"

/** Collects the behaviors of a store. */
export interface StoreSuite {
  /** Groups the behaviors that `define` adds. */
  group(name: string, define: () => void): void
  /** Adds a behavior, which is tested on an empty store with a separate clock. */
  behaves(behaviour: string, show: (store: Store, clock: ManualClock) => Promise<void>): void
  /**
   * Adds a behavior for each of the policies, whose names are appended to the name of the behavior. Default: every way to
   * count.
   */
  behavesWithEach(
    behaviour: string,
    show: (store: Store, policy: Policy, clock: ManualClock) => Promise<void>,
    policies?: readonly Policy[],
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
const STARTS_MS = Date.UTC(2024, 0, 1)
/** Calendar periods of a minute, so that the same numbers are right as for a fixed window. */
export const CALENDAR: Policy = {
  ...FIXED,
  name: "calendar",
  counter: "ca-1m",
  periods: [-1, 0, 1, 2].map((minutes) => STARTS_MS + minutes * MINUTE),
}
export const LOG: Policy = { ...SLIDING, name: "log", counter: "lg-1m", algorithm: "sliding-log" }
export const HOURLY: Policy = { ...SLIDING, name: "hourly", counter: "sl-1h", limit: 15, windowMs: HOUR }
/** Ten permits, which end one to two minutes after they were taken or last renewed. */
export const PERMITS: Policy = { ...SLIDING, name: "permits", counter: "if-1m", algorithm: "in-flight" }
/**
 * One policy for each way to count units that come back as time passes. Each policy admits ten units, which are
 * available again after at most two minutes.
 */
export const RATES: readonly Policy[] = [
  SLIDING,
  { ...SLIDING, name: "extra", counter: "ex-1m", limit: 7, extra: 3 },
  { ...SLIDING, name: "sub-windows", counter: "sb-1m", buckets: 12 },
  { ...SLIDING, name: "strict", counter: "st-1m", algorithm: "sliding-window-strict", buckets: 60 },
  LOG,
  FIXED,
  FIRST_HIT,
  CALENDAR,
  { ...SLIDING, name: "token", counter: "tk-1m", algorithm: "token-bucket" },
  { ...SLIDING, name: "burst", counter: "tb-1m", algorithm: "token-bucket", limit: 20, burst: 10 },
  { ...SLIDING, name: "periodic", counter: "tp-1m", algorithm: "token-bucket", refill: "periodic" },
  { ...SLIDING, name: "leaky", counter: "lk-1m", algorithm: "leaky-bucket" },
]
/** One policy for each way to count. */
export const EACH: readonly Policy[] = [...RATES, PERMITS]

/** Returns the policy changed so that it admits `units` units. */
export function withCeiling(policy: Policy, units: number): Policy {
  if (policy.burst !== undefined) return { ...policy, limit: 2 * units, burst: units }
  if (policy.extra === undefined) return { ...policy, limit: units }
  const extra = Math.min(units, policy.extra)
  return { ...policy, limit: units - extra, extra }
}

export function isBucket({ algorithm }: Policy): boolean {
  return algorithm === "token-bucket" || algorithm === "leaky-bucket"
}

/** The state of a counter from which no units were taken. */
export const UNTAKEN: CounterState = { startMs: 0, current: 0, previous: 0 }

/** Returns a check for the client "alice". */
export function check(policy: Policy, cost = 1, more: Partial<Check> = {}): Check {
  return { policy, partition: "alice", cost, shadow: false, ...more }
}

/** A result that includes every counter of its request. */
export interface Looked extends StoreResult {
  readonly checks: readonly Counted[]
}

/**
 * Returns the result after checking that it includes every counter. A store that does not cache refusals reads all
 * counters. Omits waits, which a store need not compute.
 */
export function looked(answer: StoreResult): Looked {
  const { checks } = withoutWaits(answer)
  const read = checks.filter((counted) => counted !== undefined)
  expect(read).toHaveLength(checks.length)
  return { ...answer, checks: read }
}

/** Returns the result without the waits of refused checks. */
export function withoutWaits(answer: StoreResult): StoreResult {
  const checks = answer.checks.map((counted) => {
    if (counted === undefined) return undefined
    const { retryAfterMs: _, ...others } = counted
    return others
  })
  return { ...answer, checks }
}

/** Takes units for one request and returns the result, which must include every counter. */
export async function takeOne(store: Store, ...checks: Check[]): Promise<Looked> {
  return looked(await store.take(checks))
}

/** Takes units for several requests, one after another, and returns the results. */
export async function takeInOrder(
  store: Store,
  requests: readonly (readonly Check[])[],
): Promise<readonly Looked[]> {
  const answers: Looked[] = []
  for (const checks of requests) answers.push(await takeOne(store, ...checks))
  return answers
}

/** Reads the counters of one request and returns the result. */
export async function peekOne(store: Store, ...checks: Check[]): Promise<Looked> {
  return looked(await peekStore(store, checks))
}

/** Returns the units in a counter, summed over both of its windows. */
export async function countOf(store: Store, policy: Policy, partition = "alice"): Promise<number> {
  const { checks } = await peekOne(store, check(policy, 0, { partition }))
  const { previous, current } = only(checks).state
  return previous + current
}

/** Returns how many of ten units are currently in use. */
export async function usedOf(store: Store, policy: Policy): Promise<number> {
  const { counters, nowMs } = await store.read([check(policy, 0)])
  const { state } = only(counters)
  let fits = 0
  while (fits < 10 && algorithmOf(policy).admits(state, policy, fits + 1, nowMs)) fits++
  return 10 - fits
}

/** Returns the counter state after the only check of a result. */
export function stateOf({ checks }: Looked): CounterState {
  return only(checks).state
}

/** Returns the units in the current window, or in the bucket. */
export function currentOf(checks: readonly Counted[]): number {
  return only(checks).state.current
}

/** Returns the only check of a result, or the only counter of a reading. */
export function only<One>(checks: readonly One[]): One {
  expect(checks).toHaveLength(1)
  return checks[0] as One
}

/** Returns how many milliseconds a client must wait, according to the first check of a result. */
export function waitOf({ checks, nowMs }: Looked, { policy, cost }: Check): number {
  const { state } = only(checks)
  return algorithmOf(policy).retryAfterMs(state, policy, cost, nowMs)
}
