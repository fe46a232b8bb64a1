/**
 * Module for NestJS 12, 11 and 10, on Express and Fastify. The decision is available as `limiter.decisionOn(request)`,
 * a {@link Decision} of `@sluice/core`.
 * @module @sluice/nestjs
 */

export { InjectLimiter, RateLimit, SkipRateLimit } from "./decorators.ts"
export { RateLimitException } from "./exception.ts"
export { RateLimitGuard } from "./guard.ts"
export { RateLimitModule } from "./module.ts"
export type { HandlerRateLimit, NestRequest, RateLimitModuleOptions } from "./options.ts"
export {
  SluiceThrottlerStorage,
  type ThrottlerHit,
  type ThrottlerStorageOptions,
} from "./throttler-storage.ts"
