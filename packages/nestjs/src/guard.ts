import {
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
  SetMetadata,
} from "@nestjs/common"
import { ModuleLimits } from "./limits.ts"
import { IS_GUARD } from "./tokens.ts"

/**
 * The guard and interceptor that `RateLimitModule` adds to all handlers. The guard checks rules whose fields exist when
 * the request arrives, such as the address. The interceptor runs after all guards of the app, and checks rules by the
 * app's own `fields`, such as the user.
 */
export class RateLimitGuard implements CanActivate, NestInterceptor {
  readonly #limits: CanActivate & NestInterceptor

  /** Nest creates the guard, with the limits of the module. */
  constructor(limits: CanActivate & NestInterceptor) {
    this.#limits = limits
  }

  /** Returns true if the request may proceed. Throws or rejects with {@link RateLimitException} if it is refused. */
  canActivate(context: ExecutionContext): ReturnType<CanActivate["canActivate"]> {
    return this.#limits.canActivate(context)
  }

  /** Calls the handler if the request may proceed. Throws or rejects with {@link RateLimitException} otherwise. */
  intercept(context: ExecutionContext, next: CallHandler): ReturnType<NestInterceptor["intercept"]> {
    return this.#limits.intercept(context, next)
  }
}

// Function calls instead of decorators, because not every build tool supports decorators of parameters.
Injectable()(RateLimitGuard)
SetMetadata(IS_GUARD, true)(RateLimitGuard)
Inject(ModuleLimits)(RateLimitGuard, undefined, 0)
