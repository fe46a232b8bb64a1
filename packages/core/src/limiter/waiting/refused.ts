import type { Ask } from "../ask.ts"
import type { Decision, PolicyCheck } from "../decision.ts"
import { DecisionRecord } from "../decision-record.ts"
import { explainUncounted } from "../explain.ts"

/** The refusal of who would have to wait behind others, under the rules of the asks `behind`, for `waitMs` at least. */
export function refusedBehind(asks: readonly Ask[], behind: readonly Ask[], waitMs: number): Decision {
  const checks = asks
    .filter(({ shadow }) => !shadow)
    .map((ask) =>
      behind.includes(ask) ? explainUncounted(ask, "quota", waitMs) : explainUncounted(ask, undefined, 0),
    )
  return new DecisionRecord(checks, false, undefined)
}

/**
 * The refusal of who was granted what it asked for, but would have to be held longer than `longestMs` by a rule that
 * `isWaitedFor`. It has been given back, so whoever comes when the difference has passed is held just so long.
 */
export function refusedForDelay(
  { checks, degraded }: Decision,
  isWaitedFor: (check: PolicyCheck) => boolean,
  longestMs: number,
): Decision {
  const refused = checks.map((check): PolicyCheck => {
    const surplusMs = check.delayMs - longestMs
    if (check.shadow || surplusMs <= 0 || !isWaitedFor(check)) return check
    const retryAfterMs = Math.ceil(surplusMs)
    return { ...check, allowed: false, refusal: "quota", retryAfterMs, remaining: 0, delayMs: 0 }
  })
  return new DecisionRecord(refused, degraded, undefined)
}

/** What those who wait are told to wait when the service goes: another instance may have taken over by then. */
const RETRY_WHEN_CLOSED_MS = 1_000

/** The refusal of who was waiting when the service stopped to serve. */
export function refusedAtClose(asks: readonly Ask[]): Decision {
  const checks = asks
    .filter(({ shadow }) => !shadow)
    .map((ask) => explainUncounted(ask, "store-failure", RETRY_WHEN_CLOSED_MS))
  return new DecisionRecord(checks, true, undefined)
}
