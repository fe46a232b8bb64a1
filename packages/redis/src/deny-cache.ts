import {
  type Algorithm,
  algorithmOf,
  type Check,
  type Counted,
  type CounterKey,
  type CounterState,
  ceilingOf,
  countsRefusals,
  type Policy,
  releases,
  type StoreResult,
  statesAfterRefusal,
  timeUnitMs,
} from "@sluice/core/stores"
import { RecentCounters } from "./recent-counters.ts"
import { isStrict } from "./scripts/script-input.ts"

/** The times at which a call was sent and its reply arrived, in milliseconds. Both are of the same clock. */
export interface Between {
  readonly sentAtMs: number
  readonly answeredAtMs: number
}

/** The latest state of a counter that Redis has reported to this process. */
interface KnownCounter extends Between {
  readonly policy: Policy
  readonly state: CounterState
  /** The time of the report by the server's clock. */
  readonly serverMs: number
}

/** The state of a counter of permits, if it matters whether the counter refuses. The cache assumes that it does. */
const ALL_HELD: CounterState = { startMs: 0, current: Number.POSITIVE_INFINITY, previous: 0 }

/**
 * A cache that refuses requests without a call to Redis. The cache remembers every counter of a refused request. It
 * refuses a request only if it knows the state of all its counters, so its result is the same as that of Redis. When
 * this process takes units, the cache updates the remembered counter. After any other change by this process, even an
 * uncertain one, the cache forgets the counter. The cache misses changes by other processes for at most `longestMs`.
 * During that time, the remembered count can be too low, but it is too high only if another process refunds or resets
 * units.
 *
 * The cache never remembers permits, because other processes give them back all the time. It refuses a request that
 * also needs permits if a rate refuses the request. The result then does not contain the counters of permits.
 */
export class DenyCache {
  readonly #longestMs: number
  readonly #counters: RecentCounters<KnownCounter>

  /** A `longestMs` of 0 disables the cache. */
  constructor(longestMs: number) {
    this.#longestMs = longestMs
    this.#counters = new RecentCounters(longestMs, ({ state }) => state.parts?.length ?? 0)
  }

  /** True if the cache contains no counters. Callers can then skip `answer`, and `learn` for grants. */
  get isEmpty(): boolean {
    return this.#counters.isEmpty
  }

  /**
   * Updates the cache from a Redis reply that no later reply has overtaken. Remembers all counters of a refusal, but
   * updates only known counters after a grant.
   */
  learn(checks: readonly Check[], { nowMs, granted, checks: counted }: StoreResult, between: Between): void {
    if (this.#longestMs === 0) return
    // No closure here, because this runs for every Redis reply.
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i] as Check
      const one = counted[i]
      // Skip a grant of 0 units, because it did not change the counter, even if a log's reported state has a new
      // time.
      if (one === undefined || (granted && one.taken === 0)) continue
      const { policy, partition } = check
      if (releases(policy)) continue
      const state = granted ? this.#stateAfterGrant(check, one, nowMs) : one.state
      if (state === undefined) continue
      const { sentAtMs, answeredAtMs } = between
      const known = { policy, state, serverMs: nowMs, sentAtMs, answeredAtMs }
      this.#counters.set(policy.counter, partition, known, answeredAtMs)
    }
  }

  /**
   * Returns the state to remember after a grant; undefined if the cache did not contain the counter, or if the
   * counter's new state is uncertain.
   */
  #stateAfterGrant(check: Check, { state, taken }: Counted, nowMs: number): CounterState | undefined {
    const { policy, partition } = check
    const known = this.#counters.get(policy.counter, partition)
    if (known === undefined) return undefined
    if (!isStrict(policy)) return state
    // The reply to a grant may omit the count of each part, so add the units to the remembered parts.
    const algorithm = algorithmOf(policy)
    const next = algorithm.withUnits(algorithm.at(known.state, policy, nowMs), policy, taken, nowMs)
    const { startMs, current, previous } = next
    if (startMs === state.startMs && current === state.current && previous === state.previous) return next
    this.#counters.delete(policy.counter, partition)
    return undefined
  }

  /** Returns the refusal that Redis would return; undefined if Redis must decide. */
  answer(checks: readonly Check[], nowMs: number): StoreResult | undefined {
    /** The counter of each check, or undefined for permits. */
    const known: (KnownCounter | undefined)[] = []
    // The server's current time is only known to be between `toldMs` and `latestMs`.
    let toldMs = 0
    let latestMs = Number.POSITIVE_INFINITY
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i] as Check
      const one = this.#knownOf(check, nowMs)
      known.push(one)
      // Permits are never known. Ask only now, because the question would slow down every remembered refusal.
      if (one === undefined && releases(check.policy)) continue
      if (one === undefined) return undefined
      const { serverMs, sentAtMs, answeredAtMs } = one
      toldMs = Math.max(toldMs, serverMs + Math.max(0, Math.floor(nowMs - answeredAtMs)))
      // The script truncates its time to a millisecond, so Redis decided up to a millisecond later than it reported.
      latestMs = Math.min(latestMs, serverMs + Math.floor(nowMs - sentAtMs + 1))
    }
    latestMs = Math.max(latestMs, toldMs)
    if (!checks.some((check, i) => isRefused(check, known[i], latestMs))) return undefined
    if (checks.some(countsRefusals)) {
      // If a refusal would change a counter, Redis must process it.
      if (countsOne(checks, known, latestMs) || countsOne(checks, known, toldMs)) return undefined
    }
    const counted = checks.map((check, i) => {
      const one = known[i]
      if (one === undefined) return undefined
      return { state: stateAt(check, one, toldMs), taken: 0, ageMs: Math.ceil(nowMs - one.sentAtMs) }
    })
    return { nowMs: toldMs, granted: false, checks: counted, isRemembered: true }
  }

  #knownOf({ policy, partition }: Check, nowMs: number): KnownCounter | undefined {
    const known = this.#counters.get(policy.counter, partition)
    if (known === undefined) return undefined
    const elapsedMs = nowMs - known.sentAtMs
    // If the clock went back, the age of the entry is unknown.
    if (!(elapsedMs >= 0 && elapsedMs < this.#longestMs)) {
      this.#counters.delete(policy.counter, partition)
      return undefined
    }
    return isCountedAlike(policy, known.policy) ? known : undefined
  }

  /** Removes counters whose state is no longer certain. */
  forget(keys: readonly CounterKey[]): void {
    for (const { policy, partition } of keys) this.#counters.delete(policy.counter, partition)
  }

  clear(): void {
    this.#counters.clear()
  }
}

/**
 * True if a counter's state has the same meaning under both policies. The limit determines how fast a bucket's units
 * come back, and the penalty how long a block lasts. The ceiling only matters if it changes the unit of time in which
 * fractions of a unit are counted.
 */
function isCountedAlike(policy: Policy, known: Policy): boolean {
  if (policy === known || algorithmOf(policy).endsByRule !== true) return true
  return (
    policy.limit === known.limit && policy.penalty === known.penalty && partMsOf(policy) === partMsOf(known)
  )
}

function partMsOf(policy: Policy): number {
  return timeUnitMs(Math.max(ceilingOf(policy), policy.limit) + 1, policy.windowMs)
}

function isRefused(check: Check, known: KnownCounter | undefined, nowMs: number): boolean {
  const { policy, cost, shadow } = check
  return (
    known !== undefined &&
    !shadow &&
    !algorithmOf(policy).admits(stateAt(check, known, nowMs), policy, cost, nowMs)
  )
}

/** True if refusing the request at this time changes any of its counters. */
function countsOne(
  checks: readonly Check[],
  known: readonly (KnownCounter | undefined)[],
  nowMs: number,
): boolean {
  const before = checks.map((check, i) => {
    const one = known[i]
    return one === undefined ? ALL_HELD : stateAt(check, one, nowMs)
  })
  const pending = checks.map((check, i) => {
    const algorithm: Algorithm = algorithmOf(check.policy)
    return { check, algorithm, state: before[i] as CounterState, taken: 0 }
  })
  const after = statesAfterRefusal(pending, before, nowMs)
  return after.some((state, i) => state !== before[i])
}

function stateAt({ policy }: Check, { state }: KnownCounter, nowMs: number): CounterState {
  return algorithmOf(policy).at(state, policy, nowMs)
}
