import { createLimiter, type Decision, RateLimitExceededError } from "@sluice/core"
import type { Surroundings } from "../surroundings.ts"

type Job = { customer: string; data: unknown }
type Run = (job: Job) => Promise<void>
/** Puts a job back into the queue, such as `job.moveToDelayed` of BullMQ. */
type Defer = (job: Job, delayMs: number) => Promise<void>

export function createProcessor(
  run: Run,
  defer: Defer,
  surroundings: Surroundings = {},
): Run {
  const field = "customer"
  const limiter = createLimiter<Job>({
    ...surroundings,
    fields: { customer: ({ customer }) => customer },
    rules: [
      { name: "jobs", field, limit: 10, window: "1 minute" },
      { name: "running", field, concurrent: 2 },
    ],
  })
  return (job) => {
    const work = async (decision: Decision): Promise<void> => {
      try {
        await run(job)
      } catch (cause) {
        await limiter.refund(decision) // A job that fails does not count.
        throw new Error("The job failed.", { cause })
      }
    }
    const done = limiter.run(job, work, { maxWaitMs: 1_000 })
    return done.catch((error: unknown) => {
      if (!(error instanceof RateLimitExceededError)) throw error
      return defer(job, error.decision.retryAfterMs)
    })
  }
}
