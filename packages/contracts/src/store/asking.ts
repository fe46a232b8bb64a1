import type { Check, Counted, CounterState, ManualClock, Policy, Store, StoreResult } from "@sluice/core"
import { expect } from "expect"

/** How the behaviours of a store are written down. */
export interface StoreSuite {
  /** What `define` writes down is about the same thing. */
  group(name: string, define: () => void): void
  /** A behaviour, shown on an empty store and a clock of its own. */
  behaves(behaviour: string, show: (store: Store, clock: ManualClock) => Promise<void>): void
  /** The same for each algorithm; the name of the policy stands behind the behaviour's. */
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
/** One policy of each way to count, each with room for ten, that are free again within two minutes at the most. */
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

/** The same way to count with room for so many. */
export function withCeiling(policy: Policy, units: number): Policy {
  if (policy.burst !== undefined) return { ...policy, limit: 2 * units, burst: units }
  if (policy.extra === undefined) return { ...policy, limit: units }
  const extra = Math.min(units, policy.extra)
  return { ...policy, limit: units - extra, extra }
}

export function isBucket({ algorithm }: Policy): boolean {
  return algorithm === "token-bucket" || algorithm === "leaky-bucket"
}

/** What a counter held that nobody had taken from. */
export const UNTAKEN: CounterState = { startMs: 0, current: 0, previous: 0 }

/** A check of alice's. */
export function check(policy: Policy, cost = 1, more: Partial<Check> = {}): Check {
  return { policy, partition: "alice", cost, shadow: false, ...more }
}

/** An answer with every counter of its request. */
export interface Looked extends StoreResult {
  readonly checks: readonly Counted[]
}

/** The answers, each with every counter of its request: where refusals are not remembered a store looks at them all. */
export function looked(answers: readonly StoreResult[]): readonly Looked[] {
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
  const { previous, current } = only(checks).state
  return previous + current
}

/** Units in use now, of the room for ten. */
export async function usedOf(store: Store, policy: Policy): Promise<number> {
  const asked = Array.from({ length: 11 }, (_, cost) => [check(policy, cost)])
  const granted = looked(await store.peek(asked)).filter((answer) => answer.granted)
  return 11 - granted.length
}

/** What the one check of an answer left its counter with. */
export function stateOf({ checks }: Looked): CounterState {
  return only(checks).state
}

/** The units of the present window, or in a bucket. */
export function currentOf(checks: readonly Counted[]): number {
  return only(checks).state.current
}

/** The one check of an answer that has one. */
export function only(checks: readonly Counted[]): Counted {
  expect(checks).toHaveLength(1)
  return checks[0] as Counted
}
