import { InvalidOptionError, type Limiter } from "@sluice/core"
import type { Guard } from "@sluice/core/adapters"
import type { FastifyRequest } from "fastify"
import type { Hook } from "./before-handler.ts"
import { decide } from "./decide.ts"
import type { Done } from "./exchange.ts"
import type { HookRateLimit } from "./options.ts"

/**
 * A function for any request hook of Fastify, from `onRequest` to `preHandler`. The function accepts the request and
 * the reply of any server (such as HTTP/2), type provider and route. Only `preParsing` passes a payload before
 * `done`.
 */
export type RateLimitHook = (
  request: object,
  reply: object,
  payload: unknown,
  done?: (error?: Error) => void,
) => void

/** The plugin's handle on an app, as `app.sluice`. The handle belongs to the nearest registration of the plugin. */
export interface FastifySluice {
  /**
   * The limiter of the plugin. Its events also report decisions by the rules of routes and hooks. They contain the
   * request, whose route is `request.routeOptions.url`.
   */
  readonly limiter: Limiter<FastifyRequest>
  /**
   * Returns a hook that limits the requests that pass through it, in addition to the plugin's rules. The whole rule
   * is checked when the hook runs. If the hook refuses a request, the units of the plugin's rules and of earlier
   * hooks stay taken. An app can add the hook to a route, a scope or a 404 handler. A route with `config: {
   * rateLimit: false }` is not limited. A hook counts each request once.
   *
   * Each hook has its own counter. The rule's name defaults to "hook-1", "hook-2" and so on, in the order of
   * creation. Hooks and routes with the same `group` share a counter.
   * @example
   * ```ts
   * import { rateLimit } from "@sluice/fastify"
   * import fastify from "fastify"
   *
   * const app = fastify()
   * await app.register(rateLimit, { limit: 100, window: "1 minute" })
   * app.register(async (admin) => {
   *   admin.addHook("preHandler", app.sluice.hook({ limit: 5, window: "1 minute", name: "admin" }))
   *   admin.get("/admin", async () => "Hello")
   * })
   * ```
   * @throws {@link InvalidOptionError} for an invalid rule, and when the app has started
   */
  hook(rule: HookRateLimit): RateLimitHook
}

const PATH = "app.sluice.hook()"

/** The handle of one registration. */
export class RegisteredSluice implements FastifySluice {
  readonly limiter: Limiter<FastifyRequest>
  readonly #guard: Guard<FastifyRequest>
  #count = 0
  #isStarted = false

  constructor(guard: Guard<FastifyRequest>) {
    this.limiter = guard.limiter
    this.#guard = guard
  }

  hook(rule: HookRateLimit): RateLimitHook {
    // Otherwise a handler might create a hook for each request, and each hook would count only that request.
    if (this.#isStarted) throw new InvalidOptionError([LATE])
    const counter = `hook-${this.#count + 1}`
    const label = `${PATH} "${counter}"`
    const guard = this.#guard.forRoute(rule, { label, counter, path: PATH, isAlone: true })
    this.#count++
    const hasRun = Symbol("sluice.hasRun")
    const hook: Hook = (
      request: FastifyRequest & { [hasRun]?: true },
      reply,
      payload,
      done = payload as Done,
    ) => {
      // Run only once, because the scope's hooks run again if a handler passes its request to the 404 handler.
      if (request[hasRun] === true || request.routeOptions.config.rateLimit === false) {
        done()
        return
      }
      request[hasRun] = true
      decide(guard, request, reply, done)
    }
    return hook as RateLimitHook
  }

  /** Marks the app as started, so that later calls of `hook` throw. */
  start(): void {
    this.#isStarted = true
  }
}

const LATE = {
  path: PATH,
  message: "was called after the app has started",
  accepted: "to call it once, before the app starts, and to put the hook that it returns on routes or scopes",
}
