import { SluiceError } from "../errors.ts"
import type { Decision } from "./decision.ts"

/** Thrown by `enforce` when the request is refused, and by `acquire`; `decision` says by which rule and for how long. */
export class RateLimitExceededError extends SluiceError {
  readonly code = "SLUICE_RATE_LIMIT_EXCEEDED"
  /** The refusal: nothing was taken. */
  readonly decision: Decision

  /** The message names the rule, the refusal and the wait. */
  constructor(decision: Decision) {
    const wait = Number.isFinite(decision.retryAfterMs)
      ? `retry after ${decision.retryAfterMs} ms`
      : "this request can never succeed"
    const who =
      decision.policy === ""
        ? "Refused, because no rules have been loaded yet"
        : `Refused by rate limit "${decision.policy}" (${decision.refusal})`
    super(`${who}: ${wait}.`)
    this.decision = decision
  }
}
