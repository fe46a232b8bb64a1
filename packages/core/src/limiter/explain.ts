import { ALGORITHMS } from "../algorithms/by-name.ts"
import type { Counted } from "../stores/store.ts"
import type { Ask } from "./ask.ts"
import type { PolicyCheck, Refusal } from "./decision.ts"

/** What a check means to the client, from what the store counted. `peeked`: nothing was taken, by intention. */
export function explainCounted(
  ask: Ask,
  counted: Counted,
  nowMs: number,
  granted: boolean,
  peeked: boolean,
): PolicyCheck {
  const { policy, cost, shadow } = ask
  const algorithm = ALGORITHMS[policy.algorithm]
  const allowed =
    granted && !peeked ? counted.taken === cost : cost === 0 || algorithm.admits(counted, policy, cost, nowMs)
  const remaining = algorithm.remaining(counted, policy, nowMs)
  const check: PolicyCheck & { refusal?: Refusal; rejectionMessage?: string } = {
    policy: policy.name,
    limit: policy.limit,
    windowMs: policy.windowMs,
    remaining,
    cost,
    allowed,
    retryAfterMs: allowed ? 0 : algorithm.retryAfterMs(counted, policy, cost, nowMs),
    nextUnitAfterMs:
      remaining >= policy.limit ? 0 : algorithm.retryAfterMs(counted, policy, remaining + 1, nowMs),
    resetAfterMs: algorithm.resetAfterMs(counted, policy, nowMs),
    shadow,
    counts: { previous: counted.previous, current: counted.current, startMs: counted.startMs },
  }
  if (!allowed) {
    check.refusal = cost > policy.limit ? "cost" : "quota"
    if (ask.rejectionMessage !== undefined) check.rejectionMessage = ask.rejectionMessage
  }
  return check
}

/** A check that was settled without counting: `remaining` is 0, because nobody looked. */
export function explainUncounted(ask: Ask, refusal: Refusal | undefined, retryAfterMs: number): PolicyCheck {
  const { policy, cost, shadow, rejectionMessage, field } = ask
  return {
    policy: policy.name,
    limit: policy.limit,
    windowMs: policy.windowMs,
    remaining: 0,
    cost,
    allowed: refusal === undefined,
    retryAfterMs,
    nextUnitAfterMs: 0,
    resetAfterMs: 0,
    shadow,
    ...(refusal === undefined ? {} : { refusal }),
    ...(refusal === undefined || rejectionMessage === undefined ? {} : { rejectionMessage }),
    ...(field === undefined ? {} : { field }),
  }
}
