import type { Limiter } from "../../../limiter/interface/limiter.ts"
import type { RequestLimiter } from "../../../limiter/request-limiter.ts"
import type { RequestFacts } from "../../../request/request.ts"

/** Returns the limiter of a route with this rule, as if it had its own mount. */
export function limiterOfRoute(limiter: Limiter, rule: object, name: string): RequestLimiter<RequestFacts> {
  const route = { key: name, whose: "the same route", label: name, rule, defaultName: name }
  return (limiter as RequestLimiter<RequestFacts>).forRoute({}, route)
}
