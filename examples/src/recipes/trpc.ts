import { createLimiter, RateLimitExceededError } from "@sluice/core"
import { initTRPC, TRPCError } from "@trpc/server"
import type { CreateHTTPContextOptions } from "@trpc/server/adapters/standalone"
import type { Surroundings } from "../surroundings.ts"

export function createTRPC(surroundings: Surroundings = {}) {
  const rule = { name: "calls", limit: 30, window: "1 minute" }
  const limiter = createLimiter({ ...surroundings, ...rule })
  const { router, procedure } = initTRPC
    .context<CreateHTTPContextOptions>()
    .create({
      errorFormatter({ shape, error: { cause } }) {
        if (!(cause instanceof RateLimitExceededError)) return shape
        const { retryAfterMs } = cause.decision
        return { ...shape, data: { ...shape.data, retryAfterMs } }
      },
    })
  const limited = procedure.use(async ({ ctx, next }) => {
    const decision = await limiter.decide(ctx.req)
    if (decision.allowed) return next()
    ctx.res.setHeader("Retry-After", Math.ceil(decision.retryAfterMs / 1000))
    const cause = new RateLimitExceededError(decision)
    throw new TRPCError({ code: "TOO_MANY_REQUESTS", cause })
  })
  return { router, limited }
}
