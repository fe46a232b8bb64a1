import { createLimiter, type Limiter } from "@sluice/core"
import {
  type DecisionRecorder,
  type DecisionSink,
  jsonLinesSink,
  type RecordOptions,
  recordDecisions,
  type SinkRecord,
} from "@sluice/recording"

interface Job {
  readonly tenant: string
}

const limiter: Limiter<Job> = createLimiter<Job>({
  limit: 10,
  window: "1 minute",
  field: "tenant",
  fields: { tenant: (job) => job.tenant },
})
const kept: SinkRecord[] = []
const keep: DecisionSink = (records) => void kept.push(...records)
const options: RecordOptions = { maxWaiting: 1_000 }

export const recorders: readonly DecisionRecorder[] = [
  recordDecisions(limiter, keep, options),
  recordDecisions(limiter, jsonLinesSink(process.stdout)),
]

// @ts-expect-error the option is `batchSize`, not `batch`
recordDecisions(limiter, keep, { batch: 10 })
// @ts-expect-error a path is not a sink
recordDecisions(limiter, "decisions.jsonl")
