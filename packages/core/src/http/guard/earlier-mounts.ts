import type { RuleCheck } from "../../decision/rule-check.ts"
import type { RequestLimiter } from "../../limiter/request-limiter.ts"
import type { RuleSet } from "../../limiter/rule-set/rule-set.ts"
import type { MountOutcome, Outcome } from "./mount-outcome.ts"
import { warnMountedTwice } from "./mount-warnings.ts"

const NONE: readonly never[] = []

/**
 * Returns a function that is true for the rules by which this limiter has not decided the request yet. Rules can be
 * left over, because the request may have had no body or no user at an earlier mount. Returns undefined if the limiter
 * has not decided the request.
 */
export function leftBy<Request>(
  limiter: RequestLimiter<Request>,
  newest: MountOutcome,
): ((ruleCheck: RuleCheck) => boolean) | undefined {
  const decided = decidedBy(limiter, newest)
  return decided && (({ policy }) => !decided.has(policy.name))
}

/**
 * Returns the outcome of a mount that has nothing left to decide. If the earlier mounts have decided by all rules, this
 * mount is superfluous, and a warning is logged.
 */
export function decidedBefore<Request>(
  limiter: RequestLimiter<Request>,
  newest: MountOutcome,
  { names }: RuleSet,
): Outcome {
  const decided = decidedBy(limiter, newest)
  if (names.every((name) => decided?.has(name))) warnMountedTwice(limiter.warner, names)
  return { decision: newest.decision, headers: NONE, removed: NONE }
}

/** Returns the names of the rules by which the limiter has decided the request; undefined if it has not decided it. */
function decidedBy<Request>(limiter: RequestLimiter<Request>, newest: MountOutcome): Set<string> | undefined {
  let decided: Set<string> | undefined
  for (let mount: MountOutcome | undefined = newest; mount !== undefined; mount = mount.earlier) {
    if (mount.limiter !== limiter) continue
    decided ??= new Set()
    for (const { policy } of mount.own.checks) decided.add(policy)
  }
  return decided
}
