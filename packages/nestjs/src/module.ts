import {
  type ConfigurableModuleAsyncOptions,
  ConfigurableModuleBuilder,
  type DynamicModule,
} from "@nestjs/common"
import { APP_GUARD, APP_INTERCEPTOR, ModulesContainer } from "@nestjs/core"
import { RateLimitGuard } from "./guard.ts"
import { ModuleLimits } from "./limits.ts"
import type { NestRequest, RateLimitModuleOptions } from "./options.ts"
import { LIMITER, OPTIONS } from "./tokens.ts"

const { ConfigurableModuleClass: Configured } = new ConfigurableModuleBuilder<RateLimitModuleOptions<object>>(
  {
    optionsInjectionToken: OPTIONS,
  },
)
  .setClassMethodName("forRoot")
  .setFactoryMethodName("createRateLimitOptions")
  .build()

/**
 * Limits all handlers of an app. The module adds a global guard and a global interceptor, and provides the limiter to
 * `@InjectLimiter()`. Requests to unknown routes reach no guard, so they are not counted.
 *
 * The module closes its limiter when the app closes, unless the limiter is shared.
 * @example
 * ```ts
 * import { Module } from "@nestjs/common"
 * import { RateLimitModule } from "@sluice/nestjs"
 *
 * @Module({ imports: [RateLimitModule.forRoot({ limit: 100, window: "1 minute" })] })
 * export class AppModule {}
 * ```
 */
// biome-ignore lint/complexity/noStaticOnlyClass: A module of Nest is a class.
export class RateLimitModule {
  /** Imports the module with its options. The start of the app fails with `InvalidOptionError` for invalid options. */
  static forRoot<Request extends object = NestRequest>(
    options: RateLimitModuleOptions<Request>,
  ): DynamicModule {
    return assembled(Configured.forRoot(options as RateLimitModuleOptions<object>))
  }

  /** Imports the module with options that a factory or class returns, as other modules of Nest do. */
  static forRootAsync<Request extends object = NestRequest>(
    options: ConfigurableModuleAsyncOptions<RateLimitModuleOptions<Request>, "createRateLimitOptions">,
  ): DynamicModule {
    return assembled(Configured.forRootAsync(options as Parameters<typeof Configured.forRootAsync>[0]))
  }
}

function assembled(configured: DynamicModule): DynamicModule {
  return {
    ...configured,
    module: RateLimitModule,
    global: true,
    providers: [
      ...(configured.providers ?? []),
      {
        provide: ModuleLimits,
        useFactory: (options: RateLimitModuleOptions<object>, modules: ModulesContainer) =>
          new ModuleLimits(options, modules),
        inject: [OPTIONS, ModulesContainer],
      },
      { provide: LIMITER, useFactory: ({ guard }: ModuleLimits) => guard.limiter, inject: [ModuleLimits] },
      RateLimitGuard,
      { provide: APP_GUARD, useExisting: RateLimitGuard },
      { provide: APP_INTERCEPTOR, useExisting: RateLimitGuard },
    ],
    exports: [ModuleLimits, LIMITER],
  }
}
