import * as core from "@sluice/core"
import * as coreRedis from "@sluice/redis"
import { fileRules } from "@sluice/rules"
import { onTestFinished } from "vitest"
import { onStandingClock } from "../standing-clock.ts"

const { createLimiter } = onStandingClock("@sluice/core", core) as unknown as typeof core
const { redisStore } = onStandingClock("@sluice/redis", coreRedis) as unknown as typeof coreRedis

/** The values for fragments about any framework. */
export const limiting = {
  createLimiter: () => createLimiter,
  fileRules: () => fileRules,
  redisStore: () => redisStore,
  /** Returns a database connection pool without waiting callers. */
  pool: (): { readonly waitingCount: number } => ({ waitingCount: 0 }),
  limiter(): core.Limiter {
    const limiter = createLimiter({ limit: 100, window: "1 minute" })
    onTestFinished(() => limiter.close())
    return limiter
  },
} as const
