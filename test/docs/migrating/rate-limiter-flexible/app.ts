import { createLimiter, type Limiter, type LimiterOptions } from "@sluice/core"
import { rateLimit as sluice } from "@sluice/express"
import express, { type Request, type RequestHandler } from "express"
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible"
import type { App, Pair } from "../pairs.ts"

/** Calls to the limiter, each on its own path of the app. */
export type Calls = Readonly<Record<string, (req: Request) => unknown>>

/** Returns the user of a request, from the header that these tests use. */
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

/** An object that consumes points: a limiter, or a combination of limiters. */
export interface Consuming {
  consume(key: string, points?: number): Promise<unknown>
}

/** Creates an app with the middleware from the peer's documentation, on one of the peer's limiters. */
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

/** Returns a function that creates such an app on a limiter in memory. The default limit is one request per minute. */
export const before =
  (
    options: Partial<MemoryOptions>,
    callsOf: (limiter: RateLimiterMemory) => Calls = () => ({}),
  ): Pair["before"] =>
  () => {
    const limiter = new RateLimiterMemory({ points: 1, duration: 60, ...options })
    return consuming(limiter, callsOf(limiter))
  }

/** Creates an app with Sluice's middleware on a limiter. */
function limited(limiter: Limiter<Request>, calls: Calls = {}): App {
  const limit = sluice({ limiter })
  const app = appOf(limit, calls)
  return { listener: app, close: () => limiter.close() }
}

/** Returns a function that creates an app with Sluice. The default limit is one request per minute. */
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
