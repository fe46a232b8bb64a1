/**
 * For authors of adapters, and of code around a limiter: the guard, the facts of a request, the response, the order
 * of mounts, and the options of a limiter's methods. docs/extend/adapters.md contains an example of an adapter.
 * @module @sluice/core/adapters
 */

export { type Bindable, isStricter } from "./decision/decision-record.ts"
export type { DecisionLogFields } from "./decision/describe-decision.ts"
export type { HeaderLine, RejectionText } from "./ground/answer.ts"
export type { Alignment, Refill } from "./ground/policy.ts"
export type { ClosingResponse } from "./http/client-gone.ts"
export { checkAll, type GroupCheck } from "./http/guard/check-all.ts"
export { createGuard, createThrowingGuard } from "./http/guard/create-guard.ts"
export type { Guard, GuardOptions } from "./http/guard/guard.ts"
export type { MountedLayer } from "./http/guard/late-place.ts"
export { MountOrder } from "./http/guard/mount-order.ts"
export type { Outcome } from "./http/guard/mount-outcome.ts"
export type { GuardedRoute } from "./http/guard/route-rule.ts"
export { RefusalError, type RefusalOptions } from "./http/refusal-error.ts"
export type { RetryAdvice } from "./http/rejection/retry.ts"
export { type Exchange, NodeExchange, respond } from "./http/respond.ts"
export type {
  AcquireOptions,
  AmountOptions,
  BlockOptions,
  PeekOptions,
  RuleSelection,
} from "./limiter/interface/limiter.ts"
export type { Mismatch, RuleExplanation } from "./limiter/interface/rule-explanation.ts"
export type { RuleUsage } from "./limiter/interface/rule-usage.ts"
export type { NodeResponse } from "./limiter/options/answer-options.ts"
export {
  HEADER_DIALECTS,
  type HeaderDialect,
  type HeaderKey,
  type NamedHeaders,
} from "./limiter/options/header-formats.ts"
export type { InlineRule, LimiterSettings, LimitWithWindow } from "./limiter/options/options.ts"
export { hasRuleOption } from "./limiter/options/options-shape.ts"
export type { DecisionStep } from "./limiter/rule-set/steps.ts"
export type { ClientAddressOptions } from "./request/client-address-options.ts"
export { clientAddressReader } from "./request/client-group.ts"
export type { FactsReader } from "./request/facts-readers.ts"
export { FetchFacts, type FetchHeaders, type FetchRequest } from "./request/fetch-facts.ts"
export type { HeaderFields } from "./request/request.ts"
export { type NodeRequest, ServerFacts, type ServerRequest } from "./request/server-facts.ts"
export type { ParsedRejection, RejectionBody } from "./rules/rejection.ts"
export type { CalendarRule, InFlightRule, RateRule } from "./rules/rule.ts"
export type { ThrottleQueue } from "./rules/throttle.ts"
