/**
 * Limits how often a client may do something, with or without a framework. This entry point has limiters, rules and
 * their sources, the memory store, and the building blocks of adapters. It loads neither a Redis client nor an SDK.
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 *
 * const limiter = createLimiter({ limit: 100, window: "1 minute" })
 * const decision = await limiter.decide({ remoteAddress: "192.0.2.7" }) // allowed: true, remaining: 99
 * ```
 * @module @sluice/core
 */

export type { Algorithm, CounterState } from "./algorithms/algorithm.ts"
export { type AlgorithmName, algorithmOf } from "./algorithms/kinds.ts"
export type { Decision, PolicyCheck, Refusal } from "./decision/decision.ts"
export { RateLimitExceededError } from "./decision/decision.ts"
export { type Bindable, isStricter } from "./decision/decision-record.ts"
export {
  type DecisionLogFields,
  type ExplainOptions,
  type Explanation,
  explainDecision,
  logFields,
} from "./decision/describe-decision.ts"
export type { HeaderLine, Rejection, RejectionAnswer, RejectionText } from "./ground/answer.ts"
export { type Clock, type ManualClock, manualClock } from "./ground/clock.ts"
export { withoutCredentials } from "./ground/credentials.ts"
export {
  ClosedError,
  InvalidOptionError,
  InvalidRuleError,
  type Problem,
  RuleSourceError,
  SluiceError,
  type StoreErrorKind,
  type StoreOutcome,
  StoreUnavailableError,
} from "./ground/errors.ts"
export type { Events } from "./ground/events.ts"
export { withExactNumbers } from "./ground/exact-numbers.ts"
export type { Awaitable, MaybePromise } from "./ground/maybe-promise.ts"
export type {
  Alignment,
  OnMissing,
  OnStoreFailure,
  ParsedQueue,
  ParsedThrottle,
  Penalty,
  Policy,
  Refill,
} from "./ground/policy.ts"
export type { LogFields, Logger, Warning, WarningCode } from "./ground/warnings.ts"
export type { ClosingResponse } from "./http/client-gone.ts"
export { checkAll, type GroupCheck } from "./http/guard/check-all.ts"
export { createGuard } from "./http/guard/create-guard.ts"
export type { Guard, GuardOptions } from "./http/guard/guard.ts"
export type { Outcome } from "./http/guard/mount-outcome.ts"
export type { GuardedRoute } from "./http/guard/route-rule.ts"
export { exposedHeaders } from "./http/headers.ts"
export { RefusalError, type RefusalOptions } from "./http/refusal-error.ts"
export type { RetryAdvice } from "./http/rejection/retry.ts"
export { type Exchange, NodeExchange, respond } from "./http/respond.ts"
export { createLimiter } from "./limiter/create-limiter.ts"
export { decideAll, type GroupDecision, type GroupRequest } from "./limiter/decide-all.ts"
export type { RuleExplanation } from "./limiter/explain-rules.ts"
export type {
  AcquireOptions,
  BlockOptions,
  CostOption,
  DecisionCall,
  Limiter,
  LimiterEvents,
  LimiterStatus,
  PeekOptions,
  ResetOptions,
  UnblockOptions,
} from "./limiter/limiter.ts"
export { decisionOn } from "./limiter/mount-decision.ts"
export type { NearLimitEvent } from "./limiter/near-limit-event.ts"
export type { NodeResponse, OnRejected } from "./limiter/options/answer-options.ts"
export {
  HEADER_DIALECTS,
  type HeaderDialect,
  type HeaderKey,
  type HeadersOption,
  type NamedHeaders,
} from "./limiter/options/header-formats.ts"
export type {
  Extractor,
  InlineRule,
  LimiterOptions,
  LimiterSettings,
  LimitWithWindow,
} from "./limiter/options/options.ts"
export { hasRuleOption } from "./limiter/options/options-shape.ts"
export type { Mismatch } from "./limiter/rule-set/mismatch.ts"
export type { DecisionStep } from "./limiter/rule-set/steps.ts"
export type { ClientAddressOptions } from "./request/client-address-options.ts"
export { addressGroup, clientAddressReader } from "./request/client-group.ts"
export type { FactsReader } from "./request/facts-readers.ts"
export { FetchFacts, type FetchHeaders, type FetchRequest } from "./request/fetch-facts.ts"
export type { HeaderFields, RequestFacts } from "./request/request.ts"
export type { OnRulesMissing, ReadyOptions, RulesEvent, RulesStatus, StaleEvent } from "./rules/live-rules.ts"
export type {
  ParsedRejection,
  RejectionBody,
  Rule,
  RuleMatch,
  RuleOverride,
  RulePenalty,
  RuleRejection,
  StorableRule,
  Throttle,
  ThrottleQueue,
} from "./rules/rule.ts"
export type { ServiceMetadata } from "./rules/service-metadata.ts"
export { type CounterStates, Counters, type NameKey } from "./stores/counters.ts"
export { type MemoryStore, type MemoryStoreOptions, memoryStore } from "./stores/memory/memory-store.ts"
export { peekStore } from "./stores/peek-store.ts"
export type {
  ChargesLostEvent,
  Check,
  Counted,
  CounterKey,
  CounterReading,
  EvictionEvent,
  Refund,
  RefundLostEvent,
  Store,
  StoreCondition,
  StoreEvent,
  StoreReading,
  StoreResult,
  StoreWarningEvent,
} from "./stores/store.ts"
export type { ChargeCounts, LeaseCounts, StoreStatus } from "./stores/store-status.ts"
export type {
  ChangeCounters,
  CounterBackend,
  CounterChange,
  KeptCounter,
} from "./stores/transactional/counter-backend.ts"
export { transactionalStore } from "./stores/transactional/transactional-store.ts"
