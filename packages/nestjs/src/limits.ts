import type {
  CallHandler,
  CanActivate,
  ExecutionContext,
  NestInterceptor,
  OnApplicationShutdown,
  OnModuleDestroy,
  Type,
} from "@nestjs/common"
import { MetadataScanner, type ModulesContainer } from "@nestjs/core"
import { createThrowingGuard, type Guard, hasRuleOption, respond } from "@sluice/core/adapters"
import { HandlerLimits, type NestHandler, type Place } from "./handler-limit.ts"
import { exchangeOf, factsOf, unsupported } from "./http.ts"
import type { RateLimitModuleOptions } from "./options.ts"
import { RULE } from "./tokens.ts"

const REMEDY =
  "Put @SkipRateLimit() on their class, and decide in the handler with the limiter of @InjectLimiter()"

type Handled = ReturnType<CallHandler["handle"]>

/** The limiter of one `RateLimitModule`, with the limits of all handlers of the app. */
export class ModuleLimits implements CanActivate, NestInterceptor, OnModuleDestroy, OnApplicationShutdown {
  /** The guard of handlers without decorators. */
  readonly guard: Guard<object>
  readonly #handlers: HandlerLimits

  /**
   * `modules` are all modules of the app, whose decorated classes are checked.
   * @throws {@link InvalidOptionError} for invalid options, and for an invalid rule of a decorator
   */
  constructor(options: RateLimitModuleOptions<object>, modules: ModulesContainer | undefined) {
    // A factory that returns nothing is an error, because a lost limit must not mean "no limit".
    const isWithoutRule = typeof options === "object" && options !== null && !hasRuleOption(options)
    const settings = isWithoutRule ? { rules: [], ...options } : options
    this.guard = createThrowingGuard({ ...settings, throwOnRefusal: true }, factsOf)
    this.#handlers = new HandlerLimits(this.guard)
    for (const { controllers, providers } of modules?.values() ?? []) {
      for (const { metatype } of [...controllers.values(), ...providers.values()]) this.#checkRules(metatype)
    }
  }

  canActivate(context: ExecutionContext): true | Promise<true> {
    return this.#pass(context, "guard")
  }

  intercept(context: ExecutionContext, next: CallHandler): Handled | Promise<Handled> {
    const passed = this.#pass(context, "interceptor")
    return passed === true ? next.handle() : passed.then(() => next.handle())
  }

  /**
   * Checks a request at a place. Returns true if the request may proceed. Throws or rejects if it is refused. The
   * promise stays pending if the client has gone, or if the app has responded.
   */
  #pass(context: ExecutionContext, place: Place): true | Promise<true> {
    const type: string = context.getType()
    if (type !== "http") throw unsupported(`requests of the context "${type}"`, REMEDY)
    const limit = this.#handlers.of(context.getClass(), context.getHandler())
    if (limit === undefined || !limit.plan.has(place)) return true
    const [request, response] = context.getArgs<[object, object]>()
    const facts = factsOf(request)
    if (facts === undefined) throw unsupported("requests of this platform", "Use Express or Fastify")
    const passed = respond(limit.guard, facts, exchangeOf(request, response), limit.plan.get(place))
    return passed instanceof Promise ? passed.then(proceed) : proceed(passed)
  }

  /** Refuses held requests, because the server waits for its open requests before it closes. */
  onModuleDestroy(): void {
    this.guard.drain()
  }

  async onApplicationShutdown(): Promise<void> {
    await this.guard.close()
  }

  /** Creates the limits of a decorated class, so that a wrong rule is an error at the start. */
  #checkRules(of: Type | NestHandler | null): void {
    const prototype: Readonly<Record<string, NestHandler>> | undefined = of?.prototype
    if (prototype === undefined) return
    for (const name of new MetadataScanner().getAllMethodNames(prototype)) {
      const handler = prototype[name] as NestHandler
      if ([of, handler].some((each) => Reflect.hasMetadata(RULE, each as NestHandler))) {
        this.#handlers.of(of as Type, handler)
      }
    }
  }
}

/** Returns true, or a promise that stays pending if nothing more may be sent. */
function proceed(passed: unknown): true | Promise<true> {
  return passed === true ? true : new Promise(() => {})
}
