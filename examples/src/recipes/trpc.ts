import { createLimiter, RateLimitExceededError } from "@sluice/core"
import { initTRPC, TRPCError } from "@trpc/server"
import type { CreateHTTPContextOptions } from "@trpc/server/adapters/standalone"
import type { Surroundings } from "../surroundings.ts"

/**
 * Creates a router, and a procedure that each client address may call 30 times a
 * minute.
 */
export function createTRPC(surroundings: Surroundings = {}) {
  const limiter = createLimiter({
    ...surroundings,
    name: "calls",
    limit: 30,
    window: "1 minute",
  })
  const { router, procedure } = initTRPC
    .context<CreateHTTPContextOptions>()
    .create({
      errorFormatter({ shape, error: { cause } }) {
        const retryAfterMs =
          cause instanceof RateLimitExceededError
            ? cause.decision.retryAfterMs
            : undefined
        return { ...shape, data: { ...shape.data, retryAfterMs } }
      },
    })
  const limited = procedure.use(async ({ ctx, next }) => {
    const decision = await limiter.decide(ctx.req)
    if (!decision.allowed) {
      ctx.res.setHeader("Retry-After", Math.ceil(decision.retryAfterMs / 1000))
      throw new TRPCError({
        code: "TOO_MANY_REQUESTS",
        cause: new RateLimitExceededError(decision),
      })
    }
    const result = await next()
    if (!result.ok && result.error.code === "INTERNAL_SERVER_ERROR")
      await limiter.refund(decision)
    return result
  })
  return { router, limited }
}
