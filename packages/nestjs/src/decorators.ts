import { Inject, SetMetadata } from "@nestjs/common"
import type { HandlerRateLimit, NestRequest } from "./options.ts"
import { LIMITER, RULE, SKIPPED } from "./tokens.ts"

/**
 * Gives a handler or all handlers of a class a rule of their own. The rule replaces the inline rule of
 * `RateLimitModule`. Rules of a list or source still apply, and the request is checked against all of them together.
 *
 * The rule of a class counts the requests of all its handlers together. A handler's rule replaces the rule of its
 * class. The rule is checked when the app starts, which fails with `InvalidOptionError` for an invalid rule.
 * @example
 * ```ts
 * import { Controller, Post } from "@nestjs/common"
 * import { RateLimit } from "@sluice/nestjs"
 *
 * @Controller()
 * export class LoginController {
 *   @Post("login")
 *   @RateLimit({ limit: 5, window: "1 minute" })
 *   login() {
 *     return "Hello"
 *   }
 * }
 * ```
 */
export function RateLimit<Request extends object = NestRequest>(
  rule: HandlerRateLimit<Request>,
): ClassDecorator & MethodDecorator {
  return SetMetadata(RULE, rule)
}

/**
 * Exempts a handler or all handlers of a class from the rules with these names; without names, from all rules. A
 * `@RateLimit` on a handler applies, even if its class has `@SkipRateLimit()`.
 */
export function SkipRateLimit(...names: readonly string[]): ClassDecorator & MethodDecorator {
  return SetMetadata(SKIPPED, names)
}

/** Injects the limiter of `RateLimitModule`: a `Limiter` of `@sluice/core`. */
export function InjectLimiter(): PropertyDecorator & ParameterDecorator {
  return Inject(LIMITER)
}
