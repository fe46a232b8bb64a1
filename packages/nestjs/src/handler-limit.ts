import type { Type } from "@nestjs/common"
import type { DecisionStep, Guard } from "@sluice/core/adapters"
import { RULE, SKIPPED } from "./tokens.ts"

/** A handler of Nest: a method of a controller, a resolver or a gateway. */
// biome-ignore lint/complexity/noBannedTypes: Nest passes handlers with this type.
export type NestHandler = Function

/** The moments at which a request can be checked: in the guard, or in the interceptor after all guards of the app. */
export type Place = "guard" | "interceptor"

/** The guard that checks the requests of a handler, and what it checks at which place. */
export interface PlannedGuard {
  readonly guard: Guard<object>
  /** The places, each with the step whose rules are checked there; undefined for all rules. */
  readonly plan: ReadonlyMap<Place, DecisionStep | undefined>
}

/** The limit of a handler, whose guard checks the rules of the module and the rule of the handler together. */
export interface HandlerLimit extends PlannedGuard {
  /** The guard of the module's rules, for an HTTP request that calls several resolvers. */
  readonly ofModule: PlannedGuard
  /** The guard that checks only the handler's own rule; undefined without such a rule. */
  readonly ofHandler: Guard<object> | undefined
  /** Whether the handler's own rule has `concurrent`. */
  readonly hasPermits: boolean
}

/** Creates the limit of each handler from the decorators of the handler and its class. */
export class HandlerLimits {
  readonly #module: Guard<object>
  readonly #known = new Map<Type, Map<NestHandler, HandlerLimit | undefined>>()
  /** The classes by name, because classes of different modules may share a name. */
  readonly #named = new Map<string, Type[]>()

  /** `module` is the guard of handlers without decorators. */
  constructor(module: Guard<object>) {
    this.#module = module
  }

  /** Returns the limit of a handler; undefined if the handler is not limited. Throws InvalidOptionError. */
  of(of: Type, handler: NestHandler): HandlerLimit | undefined {
    const handlers = this.#known.get(of) ?? new Map<NestHandler, HandlerLimit | undefined>()
    this.#known.set(of, handlers)
    if (!handlers.has(handler)) handlers.set(handler, this.#create(of, handler))
    return handlers.get(handler)
  }

  #create(of: Type, handler: NestHandler): HandlerLimit | undefined {
    const isOwn = Reflect.hasMetadata(RULE, handler)
    const skipped = skippedBy(handler) ?? skippedBy(of)
    if (skipped?.length === 0 && (skippedBy(handler) !== undefined || !isOwn)) return undefined
    const without = (guard: Guard<object>): Guard<object> =>
      skipped === undefined || skipped.length === 0 ? guard : guard.without(skipped)
    const ofModule = planned(without(this.#module))
    const decorated = isOwn ? handler : of
    if (!Reflect.hasMetadata(RULE, decorated)) {
      return { ...ofModule, ofModule, ofHandler: undefined, hasPermits: false }
    }
    const named = this.#labelOf(of)
    const label = isOwn ? `${named}.${handler.name}` : named
    const rule: unknown = Reflect.getMetadata(RULE, decorated)
    const route = { label, path: `@RateLimit of ${label}` }
    return {
      ...planned(without(this.#module.forRoute(rule, route))),
      ofModule,
      ofHandler: this.#module.forRoute(rule, { ...route, isAlone: true }),
      hasPermits: "concurrent" in Object(rule),
    }
  }

  #labelOf(of: Type): string {
    const same = this.#named.get(of.name) ?? []
    this.#named.set(of.name, same)
    if (!same.includes(of)) same.push(of)
    const index = same.indexOf(of)
    return index === 0 ? of.name : `${of.name} ${index + 1}`
  }
}

function skippedBy(decorated: Type | NestHandler): readonly string[] | undefined {
  return Reflect.getMetadata(SKIPPED, decorated)
}

/**
 * Plans the places at which a guard checks its rules. Rules by the app's own fields are checked after all guards of the
 * app, one of which may authenticate the user.
 */
function planned(guard: Guard<object>): PlannedGuard {
  const early = guard.steps.filter((step) => step !== "app")
  const isLate = guard.steps.length > early.length
  const plan = new Map<Place, DecisionStep | undefined>()
  if (early.length > 0) plan.set("guard", isLate ? early.at(-1) : undefined)
  if (isLate) plan.set("interceptor", early.length > 0 ? "app" : undefined)
  return { guard, plan }
}
