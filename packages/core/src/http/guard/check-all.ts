import type { Decision } from "../../decision/decision.ts"
import { requireGroup, takeGroup } from "../../limiter/decide-all.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { Guard } from "./guard.ts"
import type { LimiterGuard } from "./limiter-guard.ts"
import type { Outcome } from "./mount-outcome.ts"

/** One of several requests that are checked together, and the guard that checks it. */
export interface GroupCheck<Request extends object> {
  /** A guard made by `createGuard`. The limiters of all guards count in the same store. */
  readonly guard: Guard<Request>
  /** The facts that the adapter has read from the request. */
  readonly facts: RequestFacts
  /** The framework's request. */
  readonly request: Request
}

/**
 * Checks several requests together, as `decideAll` does: either all requests take their units, or none does. Returns
 * the outcomes in the order of the requests. Never holds a request, even under a rule that queues. Rejects with
 * {@link InvalidOptionError} if a limiter is used twice, or if the limiters do not share a store.
 */
export async function checkAll<Request extends object>(
  checks: readonly GroupCheck<Request>[],
): Promise<readonly Outcome[]> {
  requireGroup(checks.map(({ guard, request }) => ({ limiter: guard.limiter, request })))
  const asked = await Promise.all(
    checks.map(async ({ guard, facts, request }) => {
      const { limiter } = guard as LimiterGuard<Request>
      // Remember the rules of the decision for headers and refusals, because the rules may change before the store
      // responds.
      const prepared = await limiter.admission.prepare(facts, request, undefined)
      return { limiter, prepared, ruleSet: prepared?.ruleSet ?? limiter.ruleSet }
    }),
  )
  const decisions = await takeGroup(asked)
  return checks.map(({ guard, facts, request }, i) => {
    const { ruleSet } = asked[i] as (typeof asked)[0]
    return (guard as LimiterGuard<Request>).outcomeOf(decisions[i] as Decision, ruleSet, facts, request)
  })
}
