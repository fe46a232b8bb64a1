export type { CounterState } from "./algorithms/algorithm.ts"
export { type Clock, type ManualClock, manualClock } from "./clock.ts"
export {
  ClosedError,
  InvalidOptionError,
  InvalidRuleError,
  type Problem,
  RuleSourceError,
  SluiceError,
  StoreUnavailableError,
} from "./errors.ts"
export { createGuard, type Guard, type GuardOptions, type Outcome } from "./http/guard.ts"
export type { HeaderLine } from "./http/headers/writer.ts"
export { exposedHeaders, type HeaderDialect } from "./http/headers.ts"
export type { CostOption, Limiter, LimiterEvents } from "./http/limiter.ts"
export type { Extractor, LimiterOptions, OnRejected } from "./http/options.ts"
export type { RetryAdvice } from "./http/rejection/retry.ts"
export type { Rejection } from "./http/rejection.ts"
export type { HeaderFields, RequestFacts } from "./http/request.ts"
export { createLimiter, type FactsReader } from "./http/request-limiter.ts"
export type { Logger, Warning, WarningCode } from "./http/warnings.ts"
export type { Decision, PolicyCheck, Refusal } from "./limiter/decision.ts"
export type { Events } from "./limiter/events.ts"
export { RateLimitExceededError } from "./limiter/rate-limit-exceeded.ts"
export type { AlgorithmName, Alignment, OnStoreFailure, Policy } from "./policy.ts"
export type { OnMissing, Rule, RuleMatch } from "./rules/rule.ts"
export { parseRuleDocument } from "./rules/rule-document.ts"
export type { LoadedRules, RuleSource } from "./rules/source.ts"
export { type FileRulesOptions, fileRules } from "./rules/sources/file.ts"
export { staticRules } from "./rules/sources/static.ts"
export { type MemoryStore, type MemoryStoreOptions, memoryStore } from "./stores/memory/memory-store.ts"
export type {
  Answer,
  Check,
  Counted,
  CounterKey,
  EvictionEvent,
  MaybePromise,
  Refund,
  Store,
} from "./stores/store.ts"
