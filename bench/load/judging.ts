import type { Decision, Policy } from "@sluice/core"
import { RateLimiterRes } from "rate-limiter-flexible"
import type { Outcome, Setup } from "./contender.ts"

/** Degraded is a decision without the store. */
export function judgeDecision({ allowed, degraded }: Decision): Outcome {
  if (degraded) return "failed"
  return allowed ? "granted" : "refused"
}

/** rate-limiter-flexible rejects with the result where it refuses, and with an Error where something broke. */
export function judgeRejection(reason: unknown): Outcome {
  return reason instanceof RateLimiterRes ? "refused" : "failed"
}

/** The policy of a limit, the n-th of its kind. */
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
