import type { Decision } from "@sluice/core"
import type { Asking } from "../calls.ts"
import { Code, StatusError } from "../status-error.ts"
import type { ServiceGuard } from "./service-guards.ts"

/** Gives back what has been taken for nobody. */
export function refund({ guard }: ServiceGuard, decision: Decision): void {
  // A store that is gone keeps the units until their window has passed: the safe side.
  guard.limiter.refund(decision).catch(() => undefined)
}

/** Whether nobody waits for the answer any more. */
export function hasLeft(asking: Asking): boolean {
  return asking.closed === true
}

/** The error for a call whose caller has hung up. Nobody reads it. */
export function callerGone(): StatusError {
  return new StatusError(Code.CANCELLED, "The caller has gone.")
}
