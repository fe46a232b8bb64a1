import express, { type RequestHandler } from "express"
import {
  type RateLimiterAbstract,
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterRes,
  RateLimiterUnion,
  RLWrapperTimeouts,
} from "rate-limiter-flexible"
import { type Limit, type StartApp, serve } from "../app.ts"
import { connectRedis } from "./redis-client.ts"

// The middleware and the client follow the package's CONTEXT.md ("Express Middleware", "Redis-Specific Setup").
// Errors and Retry-After follow "Error Handling Best Practices", and the other headers follow the README. All
// features that its README and wiki offer for such situations are on: in-memory blocks, an insurance limiter,
// timeouts, and the union.
export const start: StartApp = async (setup) => {
  const client = await connectRedis(setup, { enableOfflineQueue: false })
  const limiters = setup.limits.map((limit) => createLimiter(limit, setup.storeTimeoutMs, client))
  const [first] = limiters
  const shortest = setup.limits[0]
  if (first === undefined || shortest === undefined) throw new Error("There is no limit")
  const middleware =
    limiters.length === 1 ? limited(first, shortest.limit) : limitedByAll(new RateLimiterUnion(...limiters))
  const app = express()
  app.set("trust proxy", 1)
  if (setup.mount !== "route") app.use(middleware)
  app.get("/", ...(setup.mount === "route" ? [middleware] : []), (_request, response) => {
    response.json({ hello: "world" })
  })
  return serve(app, () => client?.disconnect())
}

function createLimiter(
  { limit, windowMs }: Limit,
  timeoutMs: number,
  storeClient: Awaited<ReturnType<typeof connectRedis>>,
): RateLimiterAbstract {
  const options = { keyPrefix: `middleware${windowMs}`, points: limit, duration: windowMs / 1_000 }
  if (storeClient === undefined) return new RateLimiterMemory(options)
  const limiter = new RateLimiterRedis({
    ...options,
    storeClient,
    inMemoryBlockOnConsumed: limit,
    insuranceLimiter: new RateLimiterMemory(options),
    rejectIfRedisNotReady: true,
  })
  return new RLWrapperTimeouts({ limiter, timeoutMs, keyPrefix: options.keyPrefix })
}

function limited(limiter: RateLimiterAbstract, limit: number): RequestHandler {
  return (request, response, next) => {
    const tell = ({ msBeforeNext, remainingPoints }: RateLimiterRes) => {
      response.set("X-RateLimit-Limit", String(limit))
      response.set("X-RateLimit-Remaining", String(remainingPoints))
      response.set("X-RateLimit-Reset", String(Math.ceil((Date.now() + msBeforeNext) / 1_000)))
    }
    limiter.consume(request.ip ?? "").then(
      (result) => {
        tell(result)
        next()
      },
      (rejection: unknown) => {
        if (!(rejection instanceof RateLimiterRes)) {
          next(rejection)
          return
        }
        tell(rejection)
        response.set("Retry-After", String(Math.round(rejection.msBeforeNext / 1_000) || 1))
        response.status(429).send("Too Many Requests")
      },
    )
  }
}

/** Returns a middleware for a union, which rejects with the results of the limiters that refused, by their prefixes. */
function limitedByAll(union: RateLimiterUnion): RequestHandler {
  return (request, response, next) => {
    union.consume(request.ip ?? "").then(
      () => next(),
      (rejections: Readonly<Record<string, unknown>>) => {
        const refused = Object.values(rejections)
        const error = refused.find((one) => one instanceof Error)
        if (error !== undefined) {
          next(error)
          return
        }
        const waitMs = Math.max(...refused.map((one) => (one as RateLimiterRes).msBeforeNext))
        response.set("Retry-After", String(Math.round(waitMs / 1_000) || 1))
        response.status(429).send("Too Many Requests")
      },
    )
  }
}
