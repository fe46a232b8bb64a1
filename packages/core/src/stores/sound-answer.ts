import type { Algorithm, CounterState } from "../algorithms/algorithm.ts"
import { algorithmOf } from "../algorithms/kinds.ts"
import { isPacked } from "../algorithms/packed-counts.ts"
import { blockedByHandMs } from "../algorithms/penalty.ts"
import { StoreUnavailableError } from "../ground/errors.ts"
import { capacityOf, ceilingOf, type Policy } from "../ground/policy.ts"
import type { Check, Counted, CounterReading, StoreReading, StoreResult } from "./store.ts"

/**
 * Returns the result of a third-party store after checking that the result is possible for these checks.
 * @throws {@link StoreUnavailableError} of the kind "invalid-answer"
 */
export function soundResult(checks: readonly Check[], result: unknown): StoreResult {
  const { nowMs, granted, againAfterMs, checks: counted }: Partial<StoreResult> = membersOf(result)
  const isSound =
    isCount(nowMs) &&
    typeof granted === "boolean" &&
    (againAfterMs === undefined || isCount(againAfterMs)) &&
    Array.isArray(counted) &&
    counted.length === checks.length &&
    checks.every((check, i) => isSoundCheck(check, counted[i], nowMs, granted)) &&
    (granted || checks.some((check, i) => refuses(check, counted[i], nowMs)))
  if (!isSound) throw invalidAnswer()
  return result as StoreResult
}

/**
 * Returns the reading of a third-party store after checking that the reading is possible for these checks.
 * @throws {@link StoreUnavailableError} of the kind "invalid-answer"
 */
export function soundReading(checks: readonly Check[], reading: unknown): StoreReading {
  const { nowMs, counters }: Partial<StoreReading> = membersOf(reading)
  const isSound =
    isCount(nowMs) &&
    Array.isArray(counters) &&
    counters.length === checks.length &&
    checks.every((check, i) => isSoundCounter(check, counters[i], nowMs))
  if (!isSound) throw invalidAnswer()
  return reading as StoreReading
}

function invalidAnswer(): StoreUnavailableError {
  const message = "The store returned an invalid result. Test the store with @sluice/contracts."
  return new StoreUnavailableError(message, { kind: "invalid-answer" })
}

/** Returns an object with the members of `value`, which may be of any type. */
function membersOf(value: unknown): object {
  return typeof value === "object" && value !== null ? value : {}
}

function isSoundCheck(check: Check, counted: Counted | undefined, nowMs: number, granted: boolean): boolean {
  // This counter was not read, because another counter had refused.
  if (counted === undefined) return !granted
  const { taken, after, retryAfterMs }: Partial<Counted> = counted ?? {}
  if (after !== undefined && !isState(after)) return false
  if (retryAfterMs !== undefined && !isWait(retryAfterMs, true)) return false
  if (!isCount(taken) || !isSoundCounter(check, counted, nowMs)) return false
  // A request that is granted without its units would not be counted.
  return !granted || taken === check.cost || (check.shadow && taken === 0)
}

function refuses({ policy, cost, shadow }: Check, counted: Counted | undefined, nowMs: number): boolean {
  return !shadow && counted !== undefined && !algorithmOf(policy).admits(counted.state, policy, cost, nowMs)
}

function isSoundCounter(check: Check, counter: CounterReading | undefined, nowMs: number): boolean {
  const { state, ageMs }: Partial<CounterReading> = counter ?? {}
  if (!isState(state) || (ageMs !== undefined && !isCount(ageMs))) return false
  const { windowMs, algorithm } = check.policy
  const longestMs = algorithm === "penalty" ? Math.max(windowMs, blockedByHandMs(state)) : windowMs
  const elapsedMs = nowMs - state.startMs
  // A counter can start after `nowMs` only if the clock went back, and then by at most a window.
  const isRecent = elapsedMs <= longestMs && elapsedMs >= -windowMs
  return isRecent && canBeShown(check, algorithmOf(check.policy), state, nowMs)
}

/**
 * True if every number that a client receives is valid. Even valid counts may contradict their parts, and then a wait
 * is negative, or is infinite although the cost fits.
 */
function canBeShown(
  { policy, cost }: Check,
  algorithm: Algorithm,
  state: CounterState,
  nowMs: number,
): boolean {
  const capacity = capacityOf(policy)
  const used = algorithm.used(state, policy, nowMs)
  const nextUnit = Math.max(0, capacity - used) + 1
  return (
    Number.isSafeInteger(used) &&
    isWait(algorithm.resetAfterMs(state, policy, nowMs), policy.limit === 0) &&
    isWait(
      algorithm.retryAfterMs(state, policy, cost, nowMs),
      policy.limit === 0 || cost > ceilingOf(policy),
    ) &&
    (nextUnit > capacity ||
      isWait(algorithm.retryAfterMs(state, hardOf(policy), nextUnit, nowMs), policy.limit === 0))
  )
}

/** Returns the policy without the units that are admitted above the limit, because waits are computed for the limit. */
function hardOf(policy: Policy): Policy {
  return policy.extra === undefined ? policy : { ...policy, extra: 0 }
}

function isWait(ms: number, mayBeNever: boolean): boolean {
  return ms === Number.POSITIVE_INFINITY ? mayBeNever : isCount(ms)
}

function isState(state: unknown): state is CounterState {
  const { startMs, previous, current, parts }: Partial<CounterState> = membersOf(state)
  return isCount(startMs) && isCount(previous) && isCount(current) && (parts === undefined || isPacked(parts))
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
