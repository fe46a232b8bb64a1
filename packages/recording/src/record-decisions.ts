import type { Limiter } from "@sluice/core"
import { parseRecordOptions, type RecordOptions } from "./options.ts"
import type { DecisionSink } from "./recorded-decision.ts"
import { type DecisionRecorder, Recorder } from "./recorder.ts"

/**
 * Writes a record of each decision to a sink, in batches. docs/production/recording.md has examples.
 *
 * A decision never waits for the sink, and never fails because of it. While the sink is slow, records wait in memory, up
 * to `maxWaiting`. Lost records are counted in `status`, and logged as `SLUICE_RECORDS_LOST` at most once a minute.
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { recordDecisions } from "@sluice/recording"
 *
 * const limiter = createLimiter({ limit: 100, window: "1 minute", service: "shop" })
 * const recorder = recordDecisions(limiter, (records) => console.log(records.length)) // 2
 * await limiter.decide({ remoteAddress: "192.0.2.7" })
 * await limiter.decide({ remoteAddress: "192.0.2.8" })
 * await recorder.close()
 * recorder.status // => { waiting: 0, written: 2 }
 * ```
 * @throws {@link InvalidOptionError} with everything that is wrong with the arguments.
 */
export function recordDecisions<Request>(
  limiter: Limiter<Request>,
  sink: DecisionSink,
  options: RecordOptions = {},
): DecisionRecorder {
  return new Recorder(limiter, sink, parseRecordOptions(limiter, sink, options))
}
