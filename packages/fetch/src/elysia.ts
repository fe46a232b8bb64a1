/**
 * A plugin for Elysia 1.4, on Bun and on Node with `@elysiajs/node`. In a handler, `decisionOn(request)` of `@sluice/core`
 * returns the decision.
 * @module @sluice/fetch/elysia
 */

import type { Limiter } from "@sluice/core"
import type { MaybePromise } from "@sluice/core/kit"
import { FACTS, faultOf } from "./app-functions.ts"
import { type Decided, Limiting } from "./limiting.ts"
import type { FrameworkOptions } from "./options.ts"

/** The members of an Elysia app that the plugin uses. */
export interface ElysiaApp {
  /** The configuration of the app. */
  readonly config: {
    /** False if Elysia does not compile the app. */
    readonly aot?: boolean
  }
  /** Adds a hook that runs before the route is known. */
  onRequest(
    hook: (context: {
      /** The request. */
      readonly request: Request
      /** The status and the headers of the response. */
      readonly set: {
        /** The status, or its name. */
        status?: number | string | undefined
      }
    }) => Promise<Response | undefined>,
  ): unknown
  /** Adds a function around the handling of every request. */
  wrap(around: (handle: (...request: never) => unknown, request: Request) => () => Promise<unknown>): unknown
}

/** Limiter options, or a limiter to share. Functions in the options receive the `Request`. */
export type RateLimitOptions = FrameworkOptions<Request>

/** The plugin, and the limiter behind it. */
export interface RateLimit {
  /** Adds the limiter to an app. Elysia calls this function in `app.use`. */
  <App extends ElysiaApp>(app: App): App
  /** The limiter, for peeks, resets, event listeners and closing. */
  readonly limiter: Limiter<Request>
}

/**
 * Creates a plugin for Elysia 1.4. The plugin limits every request of the server, including unknown routes and upgrades to
 * WebSockets, also if a group or another plugin uses it. To limit a part of the app, give the rule a `match.path`. Rules
 * are checked in `onRequest`, so they cannot read the route or the body.
 * @example
 * ```ts
 * import { rateLimit } from "@sluice/fetch/elysia"
 * import { Elysia } from "elysia"
 *
 * const server = new Elysia().use(rateLimit({ limit: 100, window: "1 minute" }))
 * server.get("/", () => "hello")
 * ```
 * @throws {@link InvalidOptionError}
 */
export function rateLimit(options: RateLimitOptions): RateLimit {
  const apps = new WeakMap<Request, object>()
  const decisions = new WeakMap<Request, Decided<Request>>()
  const limiting = new Limiting<Request>(options, {
    clientAddress: (request) => addressOf(request, apps.get(request)),
    facts: () => FACTS.otherwise,
    requestOf: (request) => request,
  })
  const plugin = <App extends ElysiaApp>(app: App): App => {
    if (app.config.aot === false) throw faultOf(COMPILED, "is false, so Elysia would not call the limiter")
    // Refuse in a hook, so that the response has the headers of earlier hooks, such as those for CORS. Elysia reads the
    // names in this parameter, and provides only these members.
    app.onRequest(async ({ request, set }) => {
      apps.set(request, app)
      try {
        const decided = await limiting.decide(request)
        decisions.set(request, decided)
        return decided.refusal
      } catch (error) {
        // Otherwise, Elysia would respond with 200.
        set.status = 500
        throw error
      }
    })
    const around = (handle: (...request: never) => unknown, request: Request) => async () => {
      const response = await (handle as Handle)(request)
      const decided = decisions.get(request)
      if (decided === undefined) return response
      // On Node, nobody reads the response to an upgrade to a WebSocket, which has this member.
      return limiting.finish(decided, response, "wsId" in request)
    }
    // Elysia drops a function with the same text as an earlier one, such as that of another limiter.
    around.toString = () => `around ${++wrapped}`
    app.wrap(around)
    return app
  }
  return Object.assign(plugin, { limiter: limiting.limiter })
}

let wrapped = 0

/** Returns the address of the connection. Throws if the app does not listen by itself. */
function addressOf(request: Request & { readonly ip?: string }, app: unknown): string | undefined {
  // The server of @elysiajs/node adds this member.
  if ("ip" in request) return request.ip
  const server = (app as Listening).getServer()
  if (server === null) throw new Error("the app of Elysia does not listen on Bun, or with @elysiajs/node")
  return server.requestIP(request)?.address
}

/** Runs the hooks and the handler. On Bun, the result is undefined after an upgrade to a WebSocket. */
type Handle = (request: Request) => MaybePromise<Response | undefined>

/** The member of an app that is private in the types of Elysia. A plugin of an app returns the server of that app. */
interface Listening {
  getServer(): { requestIP(request: Request): { readonly address: string } | null } | null
}

const COMPILED = { path: "aot", accepted: "true, the default of Elysia" }
