import { createLimiter, type Limiter, type LimiterOptions } from "@sluice/core"
import { rateLimit as sluice } from "@sluice/express"
import express, { type Request, type RequestHandler } from "express"
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible"
import type { App, Pair } from "../pairs.ts"

/** What is asked of a limiter by other paths than those of the app. */
export type Calls = Readonly<Record<string, (req: Request) => unknown>>

/** Who asks: the tests' own word for it. */
export const userOf = (req: Request): string => req.get("x-user") ?? "somebody"
const costOf = (req: Request): number => Number(req.query.cost ?? 1)

function appOf(limit: RequestHandler, calls: Calls): express.Express {
  const app = express()
  for (const [path, call] of Object.entries(calls)) {
    app.get(path, async (req, res) => {
      res.send(String((await call(req)) ?? ""))
    })
  }
  return app.use(limit, (_req, res) => void res.send("ok"))
}

/** What consumes: a limiter, or several put together. */
export interface Consuming {
  consume(key: string, points?: number): Promise<unknown>
}

/** An app that has the middleware which the documentation shows, of a peer's limiter. */
export function consuming(limiter: Consuming, calls: Calls = {}): App {
  const limit: RequestHandler = (req, res, next) => {
    limiter
      .consume(userOf(req), costOf(req))
      .then(() => next())
      .catch((refused: unknown) => {
        if (refused instanceof RateLimiterRes) res.set("X-Wait-Ms", String(refused.msBeforeNext))
        res.status(429).send("Too Many Requests")
      })
  }
  return appOf(limit, calls)
}

type MemoryOptions = ConstructorParameters<typeof RateLimiterMemory>[0]

/** The same of a limiter in memory, one a minute where nothing else is said. */
export const before =
  (
    options: Partial<MemoryOptions>,
    callsOf: (limiter: RateLimiterMemory) => Calls = () => ({}),
  ): Pair["before"] =>
  () => {
    const limiter = new RateLimiterMemory({ points: 1, duration: 60, ...options })
    return consuming(limiter, callsOf(limiter))
  }

/** An app with the middleware of a limiter of Sluice. */
function limited(limiter: Limiter<Request>, calls: Calls = {}): App {
  const limit = sluice({ limiter })
  const app = appOf(limit, calls)
  return { listener: app, close: () => limiter.close() }
}

/** The same, one a minute where nothing else is said. */
export const after =
  (
    options: Partial<LimiterOptions<Request>>,
    callsOf: (limiter: Limiter<Request>) => Calls = () => ({}),
  ): Pair["after"] =>
  (clock) => {
    const own = { field: "user", fields: { user: userOf }, cost: costOf }
    const inline =
      "rules" in options ? { fields: own.fields, cost: costOf } : { limit: 1, window: "1 minute", ...own }
    const limiter = createLimiter<Request>({ ...inline, clock, ...options } as LimiterOptions<Request>)
    return limited(limiter, callsOf(limiter))
  }
