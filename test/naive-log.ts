import { peekStore } from "@sluice/core/stores"
import { expect } from "vitest"
import type { CounterState } from "../packages/core/src/algorithms/algorithm.ts"
import { slidingLog } from "../packages/core/src/algorithms/sliding-log.ts"
import type { ManualClock } from "../packages/core/src/ground/manual-clock.ts"
import { ceilingOf, type Policy } from "../packages/core/src/ground/policy.ts"
import type { Store } from "../packages/core/src/stores/store.ts"
import { takeEach } from "../packages/core/src/stores/testing/take-each.ts"
import { entriesOf, type LogEntries } from "./log-entries.ts"
import type { LogStep, LogTrace } from "./log-traces.ts"

/** A slow but obviously correct sliding log. The log is a list of the times of all units, the oldest first. */
class NaiveLog {
  readonly #windowMs: number
  #kept: readonly number[] = []

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  /** Returns the times of the units that count now. If the clock went back, later times count as the current time. */
  at(nowMs: number): readonly number[] {
    return this.#kept.map((atMs) => Math.min(atMs, nowMs)).filter((atMs) => atMs >= nowMs - this.#windowMs)
  }

  /** Takes units. True if the units were taken. */
  take(nowMs: number, policy: Policy, cost: number): boolean {
    const counted = this.at(nowMs)
    const ceiling = ceilingOf(policy)
    const asked = new Array<number>(cost).fill(nowMs)
    if (cost === 0 || counted.length + cost <= ceiling) {
      this.#keep(nowMs, [...counted, ...asked])
      return true
    }
    // Keep only the newest units. The number is the previous number of units or the ceiling, whichever is larger.
    const most = Math.max(ceiling, counted.length)
    if (policy.countRejected === true && cost <= ceiling)
      this.#keep(nowMs, [...counted, ...asked].slice(-most))
    return false
  }

  /** Refunds units that were taken at `takenMs`. A negative number charges units to that time. */
  refund(nowMs: number, takenMs: number, units: number): void {
    const counted = [...this.at(nowMs)]
    const chargedMs = Math.min(takenMs, nowMs)
    if (units < 0 && chargedMs >= nowMs - this.#windowMs) {
      counted.push(...new Array<number>(-units).fill(chargedMs))
      counted.sort((one, other) => one - other)
    }
    for (let i = 0; i < units && counted.includes(takenMs); i++) counted.splice(counted.indexOf(takenMs), 1)
    this.#keep(nowMs, counted)
  }

  /** Reads the log. A store writes the changed state when the clock went back. */
  look(nowMs: number): void {
    this.#keep(nowMs, this.at(nowMs))
  }

  /** Stores the list only if it has changed. Expired units may count again when the clock goes back. */
  #keep(nowMs: number, counted: readonly number[]): void {
    if (counted.join() !== this.at(nowMs).join() || this.#kept.some((atMs) => atMs > nowMs))
      this.#kept = counted
  }
}

/** A decision whose units may be refunded. */
interface Taken {
  readonly takenMs: number
  readonly after: CounterState
}

/**
 * Runs a trace on one counter of a store that evicts nothing. The counter is "alice" under `policy.counter`. Compares
 * all results with the naive log.
 */
export async function playLog(
  { policies, steps }: LogTrace,
  store: Store,
  clock: ManualClock,
): Promise<void> {
  const naive = new NaiveLog(policies[0].windowMs)
  const taken: Taken[] = []
  for (const step of steps) {
    clock.set(clock.now() + step.afterMs)
    naive.look(clock.now())
    const policy = policies[step.under] as Policy
    await play(step, policy, store, naive, clock.now(), taken)
    for (const each of policies) await compare(each, store, naive, clock.now())
  }
}

async function play(
  step: LogStep,
  policy: Policy,
  store: Store,
  naive: NaiveLog,
  nowMs: number,
  taken: Taken[],
): Promise<void> {
  if (step.kind === "refund") {
    const of = taken[taken.length - 1 - step.nth]
    if (of === undefined) return
    await store.refund([{ policy, partition: "alice", units: step.units, after: of.after }])
    naive.refund(nowMs, of.takenMs, step.units)
    return
  }
  const { cost, times } = step
  const request = [{ policy, partition: "alice", cost, shadow: false }]
  const answers = await takeEach(
    store,
    Array.from({ length: times }, () => request),
  )
  for (const { granted, checks } of answers) {
    const isTaken = naive.take(nowMs, policy, cost)
    const counted = checks[0]
    if (counted === undefined) throw new Error("the store has told nothing")
    const counts = entriesOf(counted.state, policy)
    expect([granted, counted.taken, counts]).toEqual([isTaken, isTaken ? cost : 0, grouped(naive.at(nowMs))])
    if (granted) taken.push({ takenMs: nowMs, after: counted.state })
  }
}

/** Compares the result of a peek at the counter. */
async function compare(policy: Policy, store: Store, naive: NaiveLog, nowMs: number): Promise<void> {
  const answer = await peekStore(store, [{ policy, partition: "alice", cost: 0, shadow: false }])
  const state = answer?.checks[0]?.state
  if (state === undefined) throw new Error("the store has told nothing")
  const counted = naive.at(nowMs)
  const leavesMs = (atMs: number) => atMs + policy.windowMs + 1
  const lastMs = counted.at(-1)
  const ceiling = ceilingOf(policy)
  const costs = [0, 1, Math.ceil(ceiling / 3), ceiling, ceiling + 1]
  const waits = costs.map((cost) => {
    if (cost === 0) return 0
    if (cost > ceiling) return Number.POSITIVE_INFINITY
    const surplus = counted.length + cost - ceiling
    return surplus <= 0 ? 0 : leavesMs(counted[surplus - 1] as number) - nowMs
  })
  expect({
    entries: entriesOf(state, policy),
    used: slidingLog.used(state, policy, nowMs),
    waits: costs.map((cost) => slidingLog.retryAfterMs(state, policy, cost, nowMs)),
    resetAfterMs: slidingLog.resetAfterMs(state, policy, nowMs),
    emptyAtMs: Math.max(nowMs, slidingLog.emptyAtMs(state, policy)),
  }).toEqual({
    entries: grouped(counted),
    used: counted.length,
    waits,
    resetAfterMs: lastMs === undefined ? 0 : leavesMs(lastMs) - nowMs,
    emptyAtMs: lastMs === undefined ? nowMs : leavesMs(lastMs),
  })
}

function grouped(instants: readonly number[]): LogEntries {
  const entries = new Map<number, number>()
  for (const atMs of instants) entries.set(atMs, (entries.get(atMs) ?? 0) + 1)
  return [...entries]
}
