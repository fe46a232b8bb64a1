import { createLimiter } from "@sluice/core"
import type { Surroundings } from "../surroundings.ts"

type Job = { customer: string; data: unknown }
type Run = (job: Job) => Promise<void>
/** Puts a job back into the queue, such as `job.moveToDelayed` of BullMQ. */
type Defer = (job: Job, delayMs: number) => Promise<void>

/** Returns a function for the workers of a queue. */
export function createProcessor(
  run: Run,
  defer: Defer,
  surroundings: Surroundings = {},
): Run {
  const limiter = createLimiter<Job>({
    ...surroundings,
    name: "jobs",
    field: "customer",
    limit: 10,
    window: "1 minute",
    fields: { customer: ({ customer }) => customer },
  })
  return async (job) => {
    const decision = await limiter.decide(job)
    if (!decision.allowed) return defer(job, decision.retryAfterMs)
    try {
      await run(job)
    } catch (error) {
      await limiter.refund(decision)
      throw error
    }
  }
}
