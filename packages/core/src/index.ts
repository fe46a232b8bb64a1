/**
 * Limits how often clients may send requests or perform actions, with or without a framework. This entry point is for
 * apps: limiters, rules, decisions, the memory store, and errors. This entry point loads neither a Redis client nor
 * an SDK.
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 *
 * const limiter = createLimiter({ limit: 100, window: "1 minute" })
 * const decision = await limiter.decide({ remoteAddress: "192.0.2.7" }) // allowed: true, remaining: 99
 * ```
 * @module @sluice/core
 */

export type { AlgorithmName } from "./algorithms/kinds.ts"
export { type Decision, type PolicyCheck, RateLimitExceededError, type Refusal } from "./decision/decision.ts"
export {
  type Explanation,
  explainDecision,
  logFields,
} from "./decision/describe-decision.ts"
export type { Reservation } from "./decision/reservation.ts"
export type { Rejection, RejectionAnswer } from "./ground/answer.ts"
export type { Clock } from "./ground/clock.ts"
export { withoutCredentials } from "./ground/credentials.ts"
export {
  ClosedError,
  InvalidOptionError,
  InvalidRuleError,
  type Problem,
  RuleSourceError,
  SluiceError,
  StoreUnavailableError,
} from "./ground/errors.ts"
export { withExactNumbers } from "./ground/exact-numbers.ts"
export type { OnMissing, OnStoreFailure } from "./ground/policy.ts"
export type { LogFields, Logger, Warning, WarningCode } from "./ground/warnings.ts"
export { exposedHeaders } from "./http/headers.ts"
export { createLimiter } from "./limiter/create-limiter.ts"
export { decideAll, type GroupDecision, type GroupRequest } from "./limiter/decide-all.ts"
export type { DecisionCall, Limiter, LimiterEvents, LimiterStatus } from "./limiter/interface/limiter.ts"
export { decisionOn } from "./limiter/interface/mount-decision.ts"
export type { NearLimitEvent } from "./limiter/interface/near-limit-event.ts"
export type { OnRejected } from "./limiter/options/answer-options.ts"
export type { HeadersOption } from "./limiter/options/header-formats.ts"
export type { Extractor, LimiterOptions } from "./limiter/options/options.ts"
export { addressGroup } from "./request/client-group.ts"
export type { RequestFacts } from "./request/request.ts"
export type { OnRulesMissing, RulesEvent, RulesStatus, StaleEvent } from "./rules/live-rules.ts"
export type { RuleRejection } from "./rules/rejection.ts"
export type { Rule, RuleMatch, RuleOverride, RulePenalty } from "./rules/rule.ts"
export type { Throttle } from "./rules/throttle.ts"
export { type MemoryStore, type MemoryStoreOptions, memoryStore } from "./stores/memory/memory-store.ts"
export type { Store } from "./stores/store.ts"
