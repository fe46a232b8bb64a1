import {
  algorithmOf,
  type Check,
  type Counted,
  type CounterKey,
  type Policy,
  type Refund,
  type StoreCondition,
  type StoreResult,
} from "@sluice/core/stores"

/** Units of a local counter that are set aside for a check, until the shared store has decided the other checks. */
export interface SetAside<Counter> {
  readonly counter: Counter
  readonly counted: Counted
  /** The server's time of the state in `counted`. */
  readonly serverMs: number
}

/** Returns the refund of units that were set aside. */
export function refundOf({ counter, counted }: SetAside<CounterKey>): Refund {
  const { policy, partition } = counter
  const { state, taken: units, after = state } = counted
  return { policy, partition, units, after }
}

/** A request that is split: local counters decide some of its checks, and the shared store decides the rest. */
export interface SplitRequest<Counter, Aside extends SetAside<Counter> = SetAside<Counter>> {
  readonly checks: readonly Check[]
  /** `counters[i]` is the local counter of `checks[i]`. Undefined if that check is always sent to the shared store. */
  readonly counters: readonly (Counter | undefined)[]
  /** The units that were set aside for `checks[i]`. Undefined if the shared store decides that check. */
  readonly aside: (Aside | undefined)[]
  /** The time of the request, by the clock of this process. */
  readonly nowMs: number
  /** The time that the caller waits, in milliseconds. */
  readonly withinMs: number | undefined
}

/** Returns the checks that the shared store decides. */
export function restOf({ checks, aside }: SplitRequest<unknown>): readonly Check[] {
  return checks.filter((_, i) => aside[i] === undefined)
}

/** Returns true if local counters have decided all checks. */
export function isWhole({ checks, aside }: SplitRequest<unknown>): boolean {
  for (let i = 0; i < checks.length; i++) if (aside[i] === undefined) return false
  return true
}

/**
 * Returns the result of a whole request. `answer` contains only the results of the rest. The time of the whole result
 * is the latest of all times. If the request was not granted, the units that were set aside are reported as not
 * taken.
 */
export function wholeResult(request: SplitRequest<unknown>, answer: StoreResult): StoreResult {
  const { nowMs, checks } = joined(request, answer)
  return { ...answer, nowMs, checks }
}

/** Returns the result of a request that local counters have decided alone. */
export function localResult(
  request: SplitRequest<unknown>,
  granted: boolean,
  condition: StoreCondition,
): StoreResult {
  // Use one spread instead of two, because this line runs for each request that local counters decide.
  const { nowMs, checks } = joined(request, granted ? GRANTED : REFUSED)
  return { nowMs, granted, checks, ...condition }
}

const GRANTED: StoreResult = { nowMs: 0, granted: true, checks: [] }
const REFUSED: StoreResult = { nowMs: 0, granted: false, checks: [] }

/** Joins the units that were set aside with the results of the rest. All results are as of the latest time. */
function joined(
  { checks, aside }: SplitRequest<unknown>,
  answer: StoreResult,
): Pick<StoreResult, "nowMs" | "checks"> {
  let { nowMs } = answer
  for (const one of aside) if (one !== undefined) nowMs = Math.max(nowMs, one.serverMs)
  const whole: (Counted | undefined)[] = []
  let next = 0
  // Use no closure, because it would slow down most requests of a leased counter.
  for (let i = 0; i < checks.length; i++) {
    const own = aside[i]
    const counted = own === undefined ? answer.checks[next++] : own.counted
    const isReturned = own !== undefined && own.counted.taken > 0 && !answer.granted
    const isOfMs = own?.serverMs ?? answer.nowMs
    const isFinal = counted === undefined || (isOfMs === nowMs && !isReturned)
    whole.push(isFinal ? counted : asOf(counted, (checks[i] as Check).policy, nowMs, isReturned))
  }
  return { nowMs, checks: whole }
}

/** Returns a result as of a later time. `isReturned` is true if its units were put back. */
function asOf(counted: Counted, policy: Policy, nowMs: number, isReturned: boolean): Counted {
  const { state, taken, after = state, ageMs } = counted
  const algorithm = algorithmOf(policy)
  let now = algorithm.at(state, policy, nowMs)
  if (isReturned) now = algorithm.withoutUnits(now, policy, taken, after, nowMs)
  return { state: now, taken: isReturned ? 0 : taken, after, ...(ageMs !== undefined && { ageMs }) }
}
