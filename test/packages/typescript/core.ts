import {
  createLimiter,
  type Decision,
  InvalidOptionError,
  type Limiter,
  RateLimitExceededError,
  type Rule,
} from "@sluice/core"
import { createGuard, type Guard } from "@sluice/core/adapters"
import { manualClock } from "@sluice/core/testing"
import { fileRules, type LiveSource, parseRuleDocument } from "@sluice/rules"

interface Job {
  readonly tenant: string
  readonly pages: number
}

const source: LiveSource = fileRules("rules.yaml")
export const rules: readonly Rule[] = parseRuleDocument({ service_id: "printer", rules: [] })

export const limiter: Limiter<Job> = createLimiter<Job>({
  rules: source,
  onRulesMissing: "allow",
  fields: { tenant: (job) => job.tenant },
  cost: (job) => job.pages,
  clock: manualClock(),
})

export const guard: Guard<Job> = createGuard<Job>({ limiter })

export async function print(job: Job, signal: AbortSignal): Promise<Decision | undefined> {
  try {
    return await limiter.acquire(job, { signal, maxWaitMs: 10_000 })
  } catch (error) {
    if (error instanceof RateLimitExceededError) return error.decision
    if (error instanceof InvalidOptionError)
      for (const { path, message } of error.problems) console.log(path, message)
    throw error
  }
}

// @ts-expect-error a misspelled option is not valid
createLimiter({ limt: 100, window: "1 minute" })
// @ts-expect-error a limiter of jobs does not accept text
void limiter.decide("printer")
