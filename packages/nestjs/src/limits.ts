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
import type { RequestFacts } from "@sluice/core"
import { createThrowingGuard, type Guard, hasRuleOption, respond } from "@sluice/core/adapters"
import { factsOfCall, httpIn, passMessage } from "./calls.ts"
import {
  type HandlerLimit,
  HandlerLimits,
  type NestHandler,
  type Place,
  type PlannedGuard,
} from "./handler-limit.ts"
import { exchangeOf, factsOf, unsupported } from "./http.ts"
import type { RateLimitModuleOptions } from "./options.ts"
import { IS_GUARD, RULE } from "./tokens.ts"

const REMEDY =
  "Put @SkipRateLimit() on their class, and decide in the handler with the limiter of @InjectLimiter()"

type Results = Map<object, true | Promise<true>>
type Handled = ReturnType<CallHandler["handle"]>

/** The limiter of one `RateLimitModule`, with the limits of all handlers of the app. */
export class ModuleLimits implements CanActivate, NestInterceptor, OnModuleDestroy, OnApplicationShutdown {
  /** The guard of handlers without decorators. */
  readonly guard: Guard<object>
  readonly #handlers: HandlerLimits
  /** The results of calls that are not HTTP requests. */
  readonly #calls = new WeakMap<ExecutionContext, true | Promise<true>>()
  /** The results of requests that call several resolvers, by place and guard. */
  readonly #results = { guard: new WeakMap<object, Results>(), interceptor: new WeakMap<object, Results>() }

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
    const limit = this.#handlers.of(context.getClass(), context.getHandler())
    if (limit === undefined) return true
    const type: string = context.getType()
    if (type === "http") return check(limit, place, context.getArgByIndex(0), context.getArgByIndex(1))
    // All guards of a call receive one context. Nest 12 also runs global guards in gateways, so this guard may run twice.
    const passed = this.#calls.get(context) ?? this.#passCall(limit, place, context, type)
    this.#calls.set(context, passed)
    return passed
  }

  #passCall(
    limit: HandlerLimit,
    place: Place,
    context: ExecutionContext,
    type: string,
  ): true | Promise<true> {
    if (limit.hasPermits) throw unsupported("calls by a rule with concurrent", "Use a limit and a window")
    if (type === "graphql") return this.#passResolver(limit, place, context.getArgByIndex(2))
    if (type !== "ws") throw unsupported(`requests of the context "${type}"`, REMEDY)
    return place === "guard" ? passMessage(limit.guard, context.getArgByIndex(0)) : true
  }

  /** Checks the rules of the module once for each HTTP request, and the handler's own rule at each call. */
  #passResolver(limit: HandlerLimit, place: Place, context: unknown): true | Promise<true> {
    const [request, response] = httpIn(context)
    const own =
      place === (limit.plan.has("interceptor") ? "interceptor" : "guard") ? limit.ofHandler : undefined
    const passOwn = (): true | Promise<true> => {
      if (own === undefined) return true
      const call: object = Object.create(request)
      return passedBy(respond(own, factsOfCall(knownFacts(request)), exchangeOf(call, response)))
    }
    const ofModule = this.#passOnce(limit.ofModule, place, request, response)
    return ofModule === true ? passOwn() : ofModule.then(passOwn)
  }

  /** Checks a request, or returns the earlier result for the same request. */
  #passOnce(planned: PlannedGuard, place: Place, request: object, response: object): true | Promise<true> {
    const results = this.#results[place].get(request) ?? new Map<object, true | Promise<true>>()
    this.#results[place].set(request, results)
    let passed = results.get(planned.guard)
    if (passed === undefined) {
      try {
        passed = check(planned, place, request, response)
      } catch (refusal) {
        passed = Promise.reject(refusal)
      }
      results.set(planned.guard, passed)
    }
    return passed
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
      const both = [of as NestHandler, handler]
      if (!both.some((each) => Reflect.hasMetadata(RULE, each))) continue
      this.#handlers.of(of as Type, handler)
      // Before Nest 12, global guards do not run in gateways.
      if (Reflect.hasMetadata("websockets:is_gateway", both[0] as NestHandler) && !both.some(isGuarded))
        throw unsupported(`the gateway ${both[0]?.name}`, "Put @UseGuards(RateLimitGuard) on it")
    }
  }
}

function check(
  { guard, plan }: PlannedGuard,
  place: Place,
  request: object,
  response: object,
): true | Promise<true> {
  if (!plan.has(place)) return true
  return passedBy(respond(guard, knownFacts(request), exchangeOf(request, response), plan.get(place)))
}

function isGuarded(decorated: NestHandler): boolean {
  const guards: readonly object[] = Reflect.getMetadata("__guards__", decorated) ?? []
  return guards.some((guard) => Reflect.hasMetadata(IS_GUARD, guard))
}

function knownFacts(request: object): RequestFacts {
  const facts = factsOf(request)
  if (facts === undefined) throw unsupported("requests of this platform", "Use Express or Fastify")
  return facts
}

/** Returns true for a passed request, or a promise that stays pending if nothing more may be sent. */
function passedBy(result: unknown): true | Promise<true> {
  if (result instanceof Promise) return result.then(passedBy)
  return result === true ? true : new Promise(() => {})
}
