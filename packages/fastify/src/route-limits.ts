import { inspect, isDeepStrictEqual } from "node:util"
import type { Guard, InvalidOptionError, Problem } from "@sluice/core"
import type { FastifyRequest } from "fastify"
import { HOOKS, type HookName, type OwnRoute } from "./own-routes.ts"
import { ruleName } from "./route-name.ts"

/** Who decides a request, and when. */
export interface RouteLimit {
  readonly guard: Guard<FastifyRequest>
  readonly hook: HookName
}

/** A counter of a route, or of the routes of one group. */
interface Counter {
  readonly guard: Guard<FastifyRequest>
  readonly rule: object
  readonly label: string
}

/** What the routes of one registration get by their `config.rateLimit`. Collects what is wrong with them. */
export class RouteLimits {
  readonly problems: Problem[] = []
  readonly #guard: Guard<FastifyRequest>
  /** The plugin's own hook; `chosen` when the app has set it. */
  readonly #hook: HookName
  readonly #chosen: boolean
  readonly #counters: Map<string, Counter> = new Map()

  constructor(guard: Guard<FastifyRequest>, hook: HookName, chosen: boolean) {
    this.#guard = guard
    this.#hook = hook
    this.#chosen = chosen
  }

  /** The limit of a route, undefined where a problem was found. */
  of({ label, written }: OwnRoute): RouteLimit | undefined {
    const at = `route ${label} config.rateLimit`
    if (typeof written !== "object" || written === null) {
      const accepted = 'false, or a rule such as { limit: 5, window: "1 minute" }'
      this.#refuse(at, `${inspect(written)} is not a rule`, accepted)
      return undefined
    }
    const { group, hook, ...rule } = written as { group?: unknown; hook?: unknown }
    if (hook !== undefined && !isHook(hook)) this.#refuse(`${at}.hook`, ...notAHook(hook))
    else if (group !== undefined && (typeof group !== "string" || group === "")) {
      this.#refuse(`${at}.group`, `${inspect(group)} is not a group`, "a non-empty text")
    } else {
      const guard = this.#counter(rule, group, label, at)
      if (guard !== undefined) return { guard, hook: hook ?? this.#hookFor(guard) }
    }
    return undefined
  }

  #counter(
    rule: object,
    group: string | undefined,
    label: string,
    at: string,
  ): Guard<FastifyRequest> | undefined {
    const key = group === undefined ? `route ${label}` : `group ${group}`
    const known = this.#counters.get(key)
    if (known !== undefined) {
      if (isDeepStrictEqual(known.rule, rule)) return known.guard
      const whose = group === undefined ? "the same route" : `group ${inspect(group)}`
      const accepted = `the rule of route ${known.label}${group === undefined ? "" : ", or another group"}`
      this.#refuse(at, `is another rule for ${whose}`, accepted)
      return undefined
    }
    try {
      const guard = this.#guard.forRoute(rule, ruleName(group ?? label))
      this.#counters.set(key, { guard, rule, label })
      return guard
    } catch (error) {
      for (const { path, ...problem } of (error as InvalidOptionError).problems) {
        this.problems.push({ path: `${at}.${path}`, ...problem })
      }
      return undefined
    }
  }

  /** Never before the plugin's own hook: what the shared rules read is there by then. */
  #hookFor(guard: Guard<FastifyRequest>): HookName {
    return this.#chosen || guard.readsArrivalOnly ? this.#hook : "preHandler"
  }

  #refuse(path: string, message: string, accepted: string): void {
    this.problems.push({ path, message, accepted })
  }
}

export function isHook(value: unknown): value is HookName {
  return HOOKS.includes(value as HookName)
}

/** What is wrong with a hook, and what would be accepted. */
export function notAHook(value: unknown): [message: string, accepted: string] {
  return [`${inspect(value)} is not a hook`, HOOKS.map((name) => `"${name}"`).join(", ")]
}
