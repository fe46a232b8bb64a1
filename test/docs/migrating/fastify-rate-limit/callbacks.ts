import { createLimiter, type Decision } from "@sluice/core"
import type { FastifyInstance, FastifyRequest, preHandlerHookHandler, RouteShorthandOptions } from "fastify"
import type { Response } from "../../../contracts/adapter/ask.ts"
import type { Pair } from "../pairs.ts"
import { thenRefused, times, twice } from "../requests.ts"
import { before, type More, registered } from "./app.ts"

/** A callback of the app. */
type Note = (request: FastifyRequest) => void
type Listener = (decision: Decision, request: FastifyRequest, note: Note) => void
type Old = Parameters<typeof before>[0]

/**
 * Returns a callback that records the URL of each request, and a function that adds an unlimited route to read these
 * URLs.
 */
function notes(): { note: Note; read: More } {
  const urls: string[] = []
  return {
    note: ({ url }) => void urls.push(url),
    read: (app) => void app.get("/calls", { config: { rateLimit: false } }, async () => urls.join(" ")),
  }
}

/**
 * Returns a function that creates an app whose options contain a callback. The app admits two requests and then bans
 * the client.
 */
const noted =
  (optionsOf: (note: Note) => Old): Pair["before"] =>
  () => {
    const { note, read } = notes()
    return before({ max: 2, ban: 1, ...optionsOf(note) }, read)()
  }

/** Returns a function that creates the same app with Sluice, with a listener to its decisions. */
const listened =
  (listener: Listener): Pair["after"] =>
  (clock) => {
    const { note, read } = notes()
    const options = { limit: 2, window: "1 minute", clock, penalty: { refusals: 2, for: "1 minute" } }
    return registered(options, (app) => {
      app.sluice.limiter.on("decision", (decision, request) => listener(decision, request, note))
      return read(app)
    })
  }

const called = {
  steps: ["/", "/?2", "/?3", "/?4", "/calls"],
  told: ({ status, body }: Response) => (status === 200 ? body : ""),
}

/** Returns the hooks of a route and a scope with separate limits, as the old plugin and Sluice create them. */
const hooked =
  (hookOf: (app: FastifyInstance, limit: number) => preHandlerHookHandler): More =>
  async (app) => {
    dear(() => ({ preHandler: hookOf(app, 1) }))(app)
    await app.register(async (scope) => {
      scope.addHook("preHandler", hookOf(app, 2))
      scope.get("/scope", async () => "ok")
    })
  }

/** Returns a function that adds a route with its own limit. */
const dear =
  (optionsOf: (app: FastifyInstance) => RouteShorthandOptions): More =>
  (app) =>
    void app.get("/dear", optionsOf(app), async () => "ok")

/** Returns a function that creates an app with the old plugin, in which only routes and hooks have limits. */
const onRoutes = (more: More): Pair["before"] => before({ global: false }, more)

/** Returns a function that creates an app with Sluice, in which only routes and hooks have limits. */
const withoutRule =
  (more: More): Pair["after"] =>
  (clock) =>
    registered({ clock }, more)

/** The peer's callbacks and methods that have a counterpart, as pairs of apps. */
export const CALLBACKS: Readonly<Record<string, Pair>> = {
  onExceeding: {
    before: noted((note) => ({ onExceeding: note })),
    after: listened(({ allowed }, request, note) => void (allowed && note(request))),
    ...called,
    expected: ["ok", "ok", "", "", "/ /?2"],
  },
  onExceeded: {
    before: noted((note) => ({ onExceeded: note })),
    after: listened(({ allowed }, request, note) => void (allowed || note(request))),
    ...called,
    expected: ["ok", "ok", "", "", "/?3 /?4"],
  },
  onBanReach: {
    before: noted((note) => ({ onBanReach: note })),
    after: listened(({ refusal }, request, note) => void (refusal === "penalty" && note(request))),
    ...called,
    expected: ["ok", "ok", "", "", "/?4"],
  },
  createRateLimit: {
    before: before({ global: false }, (app) => {
      const check = app.createRateLimit({ max: 2 })
      app.get("/look", async (request) => {
        const limit = await check(request, { increment: false })
        return limit.isAllowed ? "" : String(limit.remaining)
      })
      app.get("/take", async (request, reply) => {
        const limit = await check(request)
        return reply.code(limit.isAllowed || !limit.isExceeded ? 200 : 429).send()
      })
    }),
    after: (clock) => {
      const limiter = createLimiter<FastifyRequest>({ limit: 2, window: "1 minute", clock })
      return withoutRule((app) => {
        app.get("/look", async (request) => String((await limiter.peek(request)).remaining))
        app.get("/take", async (request, reply) => {
          const { allowed } = await limiter.decide(request)
          return reply.code(allowed ? 200 : 429).send()
        })
      })(clock)
    },
    steps: ["/look", "/take", "/look", "/take", "/take", "/look"],
    told: ({ status, body }) => [status, body],
    expected: [
      [200, "2"],
      [200, ""],
      [200, "1"],
      [200, ""],
      [429, ""],
      [200, "0"],
    ],
  },
  "rateLimit, on a scope": {
    before: onRoutes(hooked((app, max) => app.rateLimit({ max }) as never)),
    after: withoutRule(hooked((app, limit) => app.sluice.hook({ limit, window: "1 minute" }))),
    steps: [...twice, ...times(2, "/dear"), ...times(3, "/scope")],
    expected: [200, 200, ...thenRefused, 200, ...thenRefused],
  },
  rateLimit: {
    before: onRoutes(dear((app) => ({ preHandler: app.rateLimit({ max: 1 }) }))),
    after: withoutRule(dear(() => ({ config: { rateLimit: { limit: 1, window: "1 minute" } } }))),
    steps: [...twice, ...times(2, "/dear")],
    expected: [200, 200, ...thenRefused],
  },
}
