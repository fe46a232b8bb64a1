import { createLimiter } from "@sluice/core"
import type { RateLimitOptions } from "@sluice/fastify"
import type { FastifyInstance, FastifyRequest, preHandlerHookHandler } from "fastify"
import type { Pair } from "../pairs.ts"
import { thenRefused, times, twice } from "../requests.ts"
import { before, type More, registered } from "./app.ts"

/** Adds an unlimited route that returns the calls so far. */
const tells =
  (calls: readonly string[]): More =>
  (app) =>
    void app.get("/calls", { config: { rateLimit: false } }, async () => calls.join(" "))

/** Returns the pair for a callback of the peer. */
function calledBack(option: "onExceeding" | "onExceeded" | "onBanReach"): Pair {
  const is = {
    onExceeding: ({ allowed }: { allowed: boolean }) => allowed,
    onExceeded: ({ allowed }: { allowed: boolean }) => !allowed,
    onBanReach: ({ refusal }: { refusal?: string }) => refusal === "penalty",
  }[option]
  return {
    before() {
      const calls: string[] = []
      const call = (req: FastifyRequest): void => void calls.push(req.url)
      return before({ max: 2, ban: 1, [option]: call }, tells(calls))()
    },
    after(clock) {
      const calls: string[] = []
      const options = { limit: 2, window: "1 minute", clock, penalty: { refusals: 2, for: "1 minute" } }
      return registered(options, (app) => {
        app.sluice.limiter.on("decision", (decision, request) => {
          if (is(decision)) calls.push(request.url)
        })
        return tells(calls)(app)
      })
    },
    steps: ["/", "/?2", "/?3", "/?4", "/calls"],
    told: ({ status, body }) => (status === 200 ? body : ""),
    expected: [
      "ok",
      "ok",
      "",
      "",
      { onExceeding: "/ /?2", onExceeded: "/?3 /?4", onBanReach: "/?4" }[option],
    ],
  }
}

/** Returns the hooks of a route and a scope with limits of their own, as the old plugin and Sluice create them. */
const hooked =
  (hookOf: (app: FastifyInstance, limit: number) => preHandlerHookHandler): More =>
  async (app) => {
    app.get("/dear", { preHandler: hookOf(app, 1) }, async () => "ok")
    await app.register(async (scope) => {
      scope.addHook("preHandler", hookOf(app, 2))
      scope.get("/scope", async () => "ok")
    })
  }

/** The callbacks of the peer, and the methods that apps call. */
export const CALLBACKS: Readonly<Record<string, Pair>> = {
  onExceeding: calledBack("onExceeding"),
  onExceeded: calledBack("onExceeded"),
  onBanReach: calledBack("onBanReach"),
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
      return registered({ clock } as RateLimitOptions, (app) => {
        app.get("/look", async (request) => String((await limiter.peek(request)).remaining))
        app.get("/take", async (request, reply) => {
          const { allowed } = await limiter.decide(request)
          return reply.code(allowed ? 200 : 429).send()
        })
      })
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
    before: before(
      { global: false },
      hooked((app, max) => app.rateLimit({ max }) as unknown as preHandlerHookHandler),
    ),
    after: (clock) =>
      registered(
        { clock } as RateLimitOptions,
        hooked((app, limit) => app.sluice.hook({ limit, window: "1 minute" })),
      ),
    steps: [...twice, ...times(2, "/dear"), ...times(3, "/scope")],
    expected: [200, 200, ...thenRefused, 200, ...thenRefused],
  },
  rateLimit: {
    before: before(
      { global: false },
      (app) => void app.get("/dear", { preHandler: app.rateLimit({ max: 1 }) }, async () => "ok"),
    ),
    after: (clock) =>
      registered(
        { clock } as RateLimitOptions,
        (app) =>
          void app.get(
            "/dear",
            { config: { rateLimit: { limit: 1, window: "1 minute" } } },
            async () => "ok",
          ),
      ),
    steps: [...twice, ...times(2, "/dear")],
    expected: [200, 200, ...thenRefused],
  },
}
