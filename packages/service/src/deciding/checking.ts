import type { Decision } from "@sluice/core"
import type { Asking } from "../calls.ts"
import { Code, StatusError } from "../status-error.ts"
import type { ServiceGuard } from "./service-guards.ts"

/** Refunds the units of a decision because its caller does not use the decision. */
export function refund({ guard }: ServiceGuard, decision: Decision): void {
  // If the store is unavailable, the units stay taken until their window has passed, so no limit is exceeded.
  guard.limiter.refund(decision).catch(() => undefined)
}

/** Whether the caller no longer waits for the response. */
export function hasLeft(asking: Asking): boolean {
  return asking.closed === true
}

/** Creates the error for a call whose caller has disconnected. The caller never receives this error. */
export function callerGone(): StatusError {
  return new StatusError(Code.CANCELLED, "The caller has disconnected.")
}
