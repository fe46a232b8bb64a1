import { createLimiter, type Limiter } from "@sluice/core"
import { type InstrumentOptions, instrument } from "@sluice/otel"

interface Job {
  readonly tenant: string
}

const limiter: Limiter<Job> = createLimiter<Job>({
  limit: 10,
  window: "1 minute",
  field: "tenant",
  fields: { tenant: (job) => job.tenant },
})
const options: InstrumentOptions = { name: "printer", cardinalityLimit: 4_000 }

export const end: () => void = instrument(limiter, options)

// @ts-expect-error the option is `name`, not `nam`
instrument(limiter, { nam: "printer" })
// @ts-expect-error an options object is not a limiter
instrument({ limit: 10, window: "1 minute" })
