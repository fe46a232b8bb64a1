import type { Algorithm, CounterState } from "../../packages/core/src/algorithms/algorithm.ts"
import { algorithmOf } from "../../packages/core/src/algorithms/kinds.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"

/** The window of all simulations. */
export const WINDOW_MS = 60_000

/**
 * A number of taken units, and the state right after one of these units was taken. All of the units are in one
 * window.
 */
export interface Taken {
  readonly units: number
  readonly after: CounterState
}

/** Returns the policy for a limit per minute. */
export function policyOf(
  limit: number,
  algorithm: "sliding-window" | "sliding-window-strict" = "sliding-window",
): Policy {
  const buckets = algorithm === "sliding-window-strict" ? { buckets: 60 } : {}
  return {
    name: "simulated",
    counter: "simulated",
    algorithm,
    limit,
    windowMs: WINDOW_MS,
    align: "epoch",
    ...buckets,
  }
}

/** A counter that runs an algorithm of the core at the times that the caller passes. */
export class Counter {
  readonly #policy: Policy
  readonly #algorithm: Algorithm
  #state: CounterState | undefined

  constructor(policy: Policy) {
    this.#policy = policy
    this.#algorithm = algorithmOf(policy)
  }

  /** Takes units. Returns the state right afterwards, or undefined if the units do not fit. */
  take(units: number, nowMs: number): CounterState | undefined {
    const state = this.at(nowMs)
    if (!this.#algorithm.admits(state, this.#policy, units, nowMs)) return undefined
    this.#state = this.#algorithm.withUnits(state, this.#policy, units, nowMs)
    return this.#state
  }

  /** Adds units that were taken elsewhere, whether or not they fit. A negative number refunds units. */
  charge({ units, after }: Taken, nowMs: number): void {
    this.#state = this.#algorithm.withoutUnits(this.at(nowMs), this.#policy, -units, after, nowMs)
  }

  /** Returns the state at the given time. */
  at(nowMs: number): CounterState {
    this.#state = this.#algorithm.at(this.#state, this.#policy, nowMs)
    return this.#state
  }

  /** Replaces the state. */
  learn(state: CounterState): void {
    this.#state = state
  }
}

/** Units that a process has granted but not yet charged elsewhere, by the window in which they were taken. */
export class Pending {
  #byWindow = new Map<number, Taken>()

  /** The units of each window. */
  get all(): readonly Taken[] {
    return [...this.#byWindow.values()]
  }

  add(units: number, after: CounterState): void {
    const before = this.#byWindow.get(after.startMs)?.units ?? 0
    this.#byWindow.set(after.startMs, { units: before + units, after })
  }

  /** Removes all units. Returns the removed units of each window. */
  removeAll(): readonly Taken[] {
    const { all } = this
    this.#byWindow = new Map()
    return all
  }
}
