import type { Algorithm, CounterState } from "../algorithms/algorithm.ts"
import { periodEndsAfterMs, periodMsAt } from "../algorithms/calendar-window.ts"
import { algorithmOf, type RuleAlgorithm, releases } from "../algorithms/kinds.ts"
import { capacityOf, type Policy } from "../ground/policy.ts"
import type { Counted } from "../stores/store.ts"
import type { PolicyCheck, Refusal } from "./decision.ts"
import { holdMsOf } from "./permits/holding.ts"
import { canNeverFit, type RuleCheck } from "./rule-check.ts"

/**
 * The wait for a request that costs more than the limit while there is no spare capacity, in milliseconds. The time
 * until spare capacity is available again is unknown, but lasts at least one calm second.
 */
const RETRY_WHEN_CALM_MS = 1_000

/**
 * Explains a check by the counts of the store. If `isTaken`, the units were taken and the counts include them. A
 * refused request waits at least `againAfterMs`, because the store does not read the shared counts again before that
 * time.
 */
export function explainCounted(
  ruleCheck: RuleCheck,
  counted: Counted,
  nowMs: number,
  isTaken: boolean,
  againAfterMs = 0,
): PolicyCheck {
  const { policy, cost, shadow } = ruleCheck
  const { state } = counted
  const algorithm = algorithmOf(policy)
  const allowed = isTaken ? counted.taken === cost : algorithm.admits(state, policy, cost, nowMs)
  const used = algorithm.used(state, policy, nowMs)
  const granted = policy.periods === undefined ? 0 : state.previous
  const capacity = capacityOf(policy)
  const remaining = Math.max(0, capacity - used)
  const waitMs = allowed ? 0 : Math.max(retryAfterMs(ruleCheck, algorithm, counted, nowMs), againAfterMs)
  const check: Writable<PolicyCheck> = {
    policy: policy.name,
    unit: ruleCheck.unit,
    algorithm: policy.algorithm as RuleAlgorithm,
    limit: policy.limit + granted,
    windowMs: windowMsOf(policy, state),
    remaining,
    cost,
    allowed,
    retryAfterMs: waitMs,
    nextUnitAfterMs:
      policy.periods !== undefined
        ? periodEndsAfterMs(state, policy, nowMs)
        : remaining >= capacity
          ? 0
          : nextUnitAfterMs(ruleCheck, algorithm, state, remaining, waitMs, nowMs),
    resetAfterMs: algorithm.resetAfterMs(state, policy, nowMs),
    delayMs: 0,
    overLimit: allowed && cost > 0 && (isTaken ? used : used + cost) > capacity,
    shadow,
    counts: state,
    ageMs: counted.ageMs ?? 0,
  }
  if (granted > 0) check.granted = granted
  if (policy.per !== undefined) check.per = policy.per
  if (allowed && cost > 0 && algorithm.delayMs !== undefined) {
    const after = isTaken ? state : algorithm.withUnits(state, policy, cost, nowMs)
    check.delayMs = algorithm.delayMs(after, policy, cost, nowMs)
  }
  if (!allowed) {
    check.refusal = canNeverFit(ruleCheck) ? "cost" : releases(policy) ? "in-flight" : "quota"
    if (ruleCheck.rejectionMessage !== undefined) check.rejectionMessage = ruleCheck.rejectionMessage
  }
  return check
}

type Writable<Members> = { -readonly [Name in keyof Members]: Members[Name] }

/**
 * Returns the length of the window or, for permits, how long one lasts at most unless it is renewed. `state` tells which
 * calendar period it is.
 */
function windowMsOf(policy: Policy, state?: CounterState): number {
  if (state !== undefined && policy.periods !== undefined) return periodMsAt(policy, state.startMs)
  return releases(policy) ? holdMsOf(policy) : policy.windowMs
}

/**
 * Returns the milliseconds until one more unit is available. If a request lacks exactly one unit, the result is its
 * `waitMs`.
 */
function nextUnitAfterMs(
  { policy, cost, throttle }: RuleCheck,
  algorithm: Algorithm,
  state: CounterState,
  remaining: number,
  waitMs: number,
  nowMs: number,
): number {
  const lacksOne = waitMs > 0 && cost === remaining + 1
  if (lacksOne && policy.extra === undefined && throttle.kind !== "elastic") return waitMs
  const hard = policy.extra === undefined ? policy : hardOf(policy)
  return algorithm.retryAfterMs(state, hard, remaining + 1, nowMs)
}

/**
 * Returns the policy without its extra units, because waits are computed for the limit, without the units that are
 * admitted above it.
 */
function hardOf(policy: Policy): Policy {
  return { ...policy, extra: 0 }
}

/**
 * Returns the milliseconds for which a refused request must wait. Under elastic throttling, the wait is computed for
 * the limit, because spare capacity is not guaranteed. After that wait the request is admitted in any case.
 */
function retryAfterMs(
  ruleCheck: RuleCheck,
  algorithm: Algorithm,
  { state, retryAfterMs: knownMs }: Counted,
  nowMs: number,
): number {
  const { policy, cost, throttle } = ruleCheck
  if (throttle.kind !== "elastic") return knownMs ?? algorithm.retryAfterMs(state, policy, cost, nowMs)
  const waits = [hardOf(policy), policy].map((each) => algorithm.retryAfterMs(state, each, cost, nowMs))
  const certain = waits.find(Number.isFinite)
  return certain ?? (canNeverFit(ruleCheck) ? Number.POSITIVE_INFINITY : RETRY_WHEN_CALM_MS)
}

/** Returns the check of a rule that was settled without counting. `remaining` is 0 because no counter was read. */
export function explainUncounted(
  ruleCheck: RuleCheck,
  refusal: Refusal | undefined,
  retryAfterMs: number,
): PolicyCheck {
  const { policy, cost, shadow, rejectionMessage, field } = ruleCheck
  return {
    policy: policy.name,
    unit: ruleCheck.unit,
    algorithm: policy.algorithm as RuleAlgorithm,
    limit: policy.limit,
    windowMs: windowMsOf(policy),
    ...(policy.per === undefined ? {} : { per: policy.per }),
    remaining: 0,
    cost,
    allowed: refusal === undefined,
    retryAfterMs,
    nextUnitAfterMs: 0,
    resetAfterMs: 0,
    delayMs: 0,
    overLimit: false,
    shadow,
    ageMs: 0,
    ...(refusal === undefined ? {} : { refusal }),
    ...(refusal === undefined || rejectionMessage === undefined ? {} : { rejectionMessage }),
    ...(field === undefined ? {} : { field }),
  }
}
