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
  type StoreResult,
  statesAfterRefusal,
  timeUnitMs,
} from "@sluice/core/stores"
import { RecentCounters } from "./recent-counters.ts"
import { isStrict } from "./scripts/script-input.ts"

/** The times at which a call was sent and its reply arrived, in milliseconds of the same clock. */
export interface Between {
  readonly sentAtMs: number
  readonly answeredAtMs: number
}

/** A counter as Redis last reported it to this process. */
interface KnownCounter extends Between {
  readonly policy: Policy
  readonly state: CounterState
  /** The server's time of the report. */
  readonly serverMs: number
}

/**
 * A cache that refuses requests without asking Redis. The cache remembers every counter of a refused request. It
 * refuses a request only if it knows the state of all its counters, so its reply is the one that Redis would give.
 * Units that this process takes update a remembered counter. Any other change by this process, even a possible one,
 * removes the entry. Changes by other processes are seen after at most `longestMs`. Until then a counter can only hold
 * more than is remembered, unless other processes refund or reset.
 */
export class DenyCache {
  readonly #longestMs: number
  readonly #counters: RecentCounters<KnownCounter>

  /** 0 turns the cache off. */
  constructor(longestMs: number) {
    this.#longestMs = longestMs
    this.#counters = new RecentCounters(longestMs, ({ state }) => state.parts?.length ?? 0)
  }

  /** True if nothing is remembered. Callers can then skip `answer`, and `learn` for grants. */
  get isEmpty(): boolean {
    return this.#counters.isEmpty
  }

  /**
   * Learns from a reply of Redis that no later reply has overtaken. Remembers all counters of a refusal, but updates
   * only known counters after a grant.
   */
  learn(checks: readonly Check[], { nowMs, granted, checks: counted }: StoreResult, between: Between): void {
    if (this.#longestMs === 0) return
    // Each reply of Redis is learned from, so there is no closure here.
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i] as Check
      const one = counted[i]
      // A grant of 0 units left the counter unchanged, although the state of a log is reported as of now.
      if (one === undefined || (granted && one.taken === 0)) continue
      const { policy, partition } = check
      const state = granted ? this.#stateAfterGrant(check, one, nowMs) : one.state
      if (state === undefined) continue
      const { sentAtMs, answeredAtMs } = between
      const known = { policy, state, serverMs: nowMs, sentAtMs, answeredAtMs }
      this.#counters.set(policy.counter, partition, known, answeredAtMs)
    }
  }

  /**
   * Returns the state to remember after a grant; undefined if the counter was not known before, or is not known now.
   */
  #stateAfterGrant(check: Check, { state, taken }: Counted, nowMs: number): CounterState | undefined {
    const { policy, partition } = check
    const known = this.#counters.get(policy.counter, partition)
    if (known === undefined) return undefined
    if (!isStrict(policy)) return state
    // A grant may report only an outline of the parts, so add the units to the remembered parts.
    const algorithm = algorithmOf(policy)
    const next = algorithm.withUnits(algorithm.at(known.state, policy, nowMs), policy, taken, nowMs)
    const { startMs, current, previous } = next
    if (startMs === state.startMs && current === state.current && previous === state.previous) return next
    this.#counters.delete(policy.counter, partition)
    return undefined
  }

  /** Returns the refusal that Redis would give; undefined if Redis must be asked. */
  answer(checks: readonly Check[], nowMs: number): StoreResult | undefined {
    const known: KnownCounter[] = []
    // The server's time is not known exactly. The server's time is between `toldMs` and `latestMs`.
    let toldMs = 0
    let latestMs = Number.POSITIVE_INFINITY
    for (let i = 0; i < checks.length; i++) {
      const one = this.#knownOf(checks[i] as Check, nowMs)
      if (one === undefined) return undefined
      known.push(one)
      const { serverMs, sentAtMs, answeredAtMs } = one
      toldMs = Math.max(toldMs, serverMs + Math.max(0, Math.floor(nowMs - answeredAtMs)))
      // The script truncates its time to a millisecond, so Redis decided up to a millisecond later than it reported.
      latestMs = Math.min(latestMs, serverMs + Math.floor(nowMs - sentAtMs + 1))
    }
    latestMs = Math.max(latestMs, toldMs)
    if (!checks.some((check, i) => isRefused(check, known[i] as KnownCounter, latestMs))) return undefined
    if (checks.some(countsRefusals)) {
      // Redis must process a refusal that would change a counter.
      if (countsOne(checks, known, latestMs) || countsOne(checks, known, toldMs)) return undefined
    }
    const counted = checks.map((check, i) => ({
      state: stateAt(check, known[i] as KnownCounter, toldMs),
      taken: 0,
      ageMs: Math.ceil(nowMs - (known[i] as KnownCounter).sentAtMs),
    }))
    return { nowMs: toldMs, granted: false, checks: counted, isRemembered: true }
  }

  #knownOf({ policy, partition }: Check, nowMs: number): KnownCounter | undefined {
    const known = this.#counters.get(policy.counter, partition)
    if (known === undefined) return undefined
    const elapsedMs = nowMs - known.sentAtMs
    // If the clock went back, nothing is certain.
    if (!(elapsedMs >= 0 && elapsedMs < this.#longestMs)) {
      this.#counters.delete(policy.counter, partition)
      return undefined
    }
    return isCountedAlike(policy, known.policy) ? known : undefined
  }

  /** Forgets counters that have changed in an unknown way. */
  forget(keys: readonly CounterKey[]): void {
    for (const { policy, partition } of keys) this.#counters.delete(policy.counter, partition)
  }

  clear(): void {
    this.#counters.clear()
  }
}

/**
 * True if a state means the same under both policies. The limit determines how fast a bucket's units come back, and the
 * penalty how long a block lasts. The ceiling only matters if it changes the unit of time in which parts of a unit are
 * counted.
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

function isRefused(check: Check, known: KnownCounter, nowMs: number): boolean {
  const { policy, cost, shadow } = check
  return !shadow && !algorithmOf(policy).admits(stateAt(check, known, nowMs), policy, cost, nowMs)
}

/** True if refusing the request at this time changes any of its counters. */
function countsOne(checks: readonly Check[], known: readonly KnownCounter[], nowMs: number): boolean {
  const before = checks.map((check, i) => stateAt(check, known[i] as KnownCounter, nowMs))
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
