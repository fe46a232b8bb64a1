import type { Decision } from "../../decision/decision.ts"
import { COPIES } from "../../ground/copies.ts"

/**
 * The key under which a request stores the decisions of mounts, newest first. All copies of this version of the
 * package use the same key, so that `decisionOn` of one copy returns the decisions of another.
 */
export const MARK: typeof COPIES = COPIES

/** A request, with the decisions that mounts have stored on it. Absent before the first mount has decided. */
export type Marked<Mount extends MountDecision = MountDecision> = { [MARK]?: Mount }

/** The decision of one mount of a limiter on a request, linked to the decisions of the mounts before it. */
export interface MountDecision {
  readonly limiter: object
  readonly earlier: MountDecision | undefined
  /** This mount's own decision, even if the decision of another mount is the binding one. */
  readonly own: Decision
  /** The binding decision of all mounts so far. */
  readonly decision: Decision
}

/** Returns the binding decision of all mounts so far; undefined if no mount has decided the request. */
export function decisionOn(request: object): Decision | undefined {
  return (request as Marked | null | undefined)?.[MARK]?.decision
}
