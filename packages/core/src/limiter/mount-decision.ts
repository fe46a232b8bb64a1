import type { Decision } from "../decision/decision.ts"

/** The key under which a request keeps what mounts have decided on it, newest first. */
export const MARK: unique symbol = Symbol("sluice")

/** A request that mounts may have decided. */
export type Marked<Mount extends MountDecision = MountDecision> = { [MARK]?: Mount }

/** What one mount of a limiter has decided on a request, with the mounts before it. */
export interface MountDecision {
  readonly limiter: object
  readonly earlier: MountDecision | undefined
  /** This mount's own decision, whether or not it binds. */
  readonly own: Decision
  /** Of all mounts so far, the decision that binds. */
  readonly decision: Decision
}

/** What has been decided on a request so far, of all mounts the decision that binds; undefined where nobody has. */
export function decisionOn(request: object): Decision | undefined {
  return (request as Marked | null | undefined)?.[MARK]?.decision
}
