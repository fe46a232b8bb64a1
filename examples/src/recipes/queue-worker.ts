import { createLimiter, RateLimitExceededError } from "@sluice/core"
import type { Surroundings } from "../surroundings.ts"

type Job = { readonly customer: string; readonly data: unknown }
type Run = (job: Job, signal: AbortSignal) => Promise<void>
/**
 * Puts a job back into the queue for later, such as `job.moveToDelayed` of BullMQ.
 */
type Defer = (job: Job, delayMs: number) => Promise<void>

/**
 * Returns a function for the workers of a queue. It runs at most 10 jobs a minute
 * for each customer.
 */
export function createProcessor(
  run: Run,
  defer: Defer,
  surroundings: Surroundings = {},
): Run {
  const fields = { customer: ({ customer }: Job) => customer }
  const rate = { name: "jobs", field: "customer", limit: 10, window: "1 minute" }
  const limiter = createLimiter<Job>({ ...surroundings, ...rate, fields })
  return async (job, signal) => {
    try {
      // A job that waits occupies a worker, which the jobs of other customers need.
      // So it does not wait for long.
      const decision = await limiter.acquire(job, {
        signal,
        maxWaitMs: 500,
        maxWaiting: 2,
      })
      try {
        await run(job, signal)
      } catch (error) {
        await limiter.refund(decision)
        throw error
      }
    } catch (error) {
      if (!(error instanceof RateLimitExceededError)) throw error
      await defer(job, error.decision.retryAfterMs)
    }
  }
}
