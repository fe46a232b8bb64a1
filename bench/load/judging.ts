import type { Decision } from "@sluice/core"
import type { Policy } from "@sluice/core/stores"
import { RateLimiterRes } from "rate-limiter-flexible"
import type { Outcome, Setup } from "./contender.ts"

/** Returns the outcome of a decision. A degraded decision counts as failed, because it was made without the store. */
export function judgeDecision({ allowed, degraded }: Decision): Outcome {
  if (degraded) return "failed"
  return allowed ? "granted" : "refused"
}

/** Returns the outcome of a rejection by rate-limiter-flexible: a result is a refusal, and an Error is a failure. */
export function judgeRejection(reason: unknown): Outcome {
  return reason instanceof RateLimiterRes ? "refused" : "failed"
}

/** Returns the policy of the n-th limit. */
export function policyOf({ limit, windowMs }: Setup["limits"][number], nth: number): Policy {
  return {
    name: `ip-${windowMs}`,
    counter: `k3JxW0aQ7rBn5Tz${nth}`,
    algorithm: "sliding-window",
    limit,
    windowMs,
    align: "epoch",
  }
}
