import type { Clock, Limiter, Logger } from "@sluice/core"
import {
  clockOption,
  interval,
  loggerOption,
  mustBe,
  type OptionCheck,
  problemAt,
  requireOptions,
  steadyClock,
  wholeNumber,
} from "@sluice/core/kit"

/** Options of `recordDecisions`. */
export interface RecordOptions {
  /**
   * Maximum number of records that wait for the sink. Further decisions are not recorded, but counted as lost. Default:
   * 10,000.
   */
  readonly maxWaiting?: number | undefined
  /** Maximum number of records in a batch. Default: 500. */
  readonly batchSize?: number | undefined
  /** Maximum time that a record waits for its batch to fill up, in milliseconds. Default: 1,000. */
  readonly intervalMs?: number | undefined
  /** The destination of the warning about lost records. Default: `process.emitWarning`. */
  readonly logger?: Logger | undefined
  /** The source of time, for tests. Default: a monotonic clock. */
  readonly clock?: Clock | undefined
}

/** The options with their defaults. */
export interface ParsedRecordOptions {
  readonly maxWaiting: number
  readonly batchSize: number
  readonly intervalMs: number
  readonly logger: Logger | undefined
  readonly clock: Clock
}

const SINK = 'a function that writes records, such as jsonLinesSink("decisions.jsonl")'
const checkSink = mustBe("a sink", SINK, (value) => typeof value === "function")
const checkLimiter = mustBe(
  "a limiter",
  "a limiter that createLimiter() returned, or the `limiter` of a middleware",
  (value) => {
    const { on, decide } = (value ?? {}) as Partial<Limiter>
    return typeof on === "function" && typeof decide === "function"
  },
)
const checkRecords = wholeNumber("number of records", "records")
const CHECKS: Readonly<Record<string, OptionCheck>> = {
  maxWaiting: checkRecords,
  batchSize: checkRecords,
  intervalMs: interval,
  logger: loggerOption,
  clock: clockOption,
}

/**
 * Checks the arguments of `recordDecisions`, and returns its options with their defaults.
 * @throws {@link InvalidOptionError} with every problem
 */
export function parseRecordOptions(
  limiter: unknown,
  sink: unknown,
  options: RecordOptions,
): ParsedRecordOptions {
  requireOptions("recordDecisions()", options, CHECKS, [
    ...problemAt("limiter", limiter, checkLimiter),
    ...problemAt("sink", sink, checkSink),
  ])
  const { maxWaiting = 10_000, batchSize = 500, ...others } = options
  return {
    maxWaiting,
    // Limit the batch size to `maxWaiting`, because a larger batch could never fill up.
    batchSize: Math.min(batchSize, maxWaiting),
    intervalMs: others.intervalMs ?? 1_000,
    logger: others.logger,
    clock: others.clock ?? steadyClock,
  }
}

/** Options of `close`. */
export interface RecorderCloseOptions {
  /** Maximum time to write the waiting records, in milliseconds. Default: 5,000. */
  readonly withinMs?: number | undefined
}

/** Returns the time for `close` in milliseconds. Throws {@link InvalidOptionError}. */
export function parseCloseOptions(options: RecorderCloseOptions): number {
  requireOptions("close()", options, { withinMs: interval })
  return options.withinMs ?? 5_000
}
