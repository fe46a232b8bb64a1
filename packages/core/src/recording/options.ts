import * as v from "valibot"
import { type Clock, steadyClock } from "../ground/clock.ts"
import { InvalidOptionError, type Problem } from "../ground/errors.ts"
import { hasMethods, integer, interval, logger, readShape, says, strict } from "../ground/shape.ts"
import { locate, show } from "../ground/show.ts"
import type { Logger } from "../ground/warnings.ts"

/** Options of `recordDecisions`. */
export interface RecordOptions {
  /** Most records that wait for the sink. Further decisions are not recorded, and counted as lost. Default: 10,000. */
  readonly maxWaiting?: number | undefined
  /** Most records in a batch. Default: 500. */
  readonly batchSize?: number | undefined
  /** Longest time that a record waits for its batch to fill up, in milliseconds. Default: 1,000. */
  readonly intervalMs?: number | undefined
  /** The destination of the warning about lost records. Default: `process.emitWarning`. */
  readonly logger?: Logger | undefined
  /** The source of time, for tests. Default: a clock that never jumps. */
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

const RECORDS = says("a valid number of records", "a whole number from 1 up")
const CLOCK = says("a clock", "{ now(): epoch milliseconds, wait?(ms, signal) }")

const shape = strict("the options of recordDecisions()", {
  maxWaiting: v.optional(integer(RECORDS, 1)),
  batchSize: v.optional(integer(RECORDS, 1)),
  intervalMs: interval,
  logger,
  clock: v.optional(v.custom((value) => hasMethods(value, "now"), CLOCK)),
})

/**
 * Checks the arguments of `recordDecisions`, and returns its options with their defaults.
 * @throws {@link InvalidOptionError} with every problem
 */
export function parseRecordOptions(limiter: unknown, sink: unknown, value: unknown): ParsedRecordOptions {
  const { good, problems: found } = readShape(shape, value)
  const problems: Problem[] = found.map((problem) => locate("", problem))
  if (typeof sink !== "function") {
    const accepted = 'a function that writes records, such as jsonLinesSink("decisions.jsonl")'
    problems.unshift({ path: "sink", message: `${show(sink)} is not a sink`, accepted })
  }
  if (!hasMethods(limiter, "on", "decide")) {
    const accepted = "a limiter that createLimiter() returned, or the `limiter` of a middleware"
    problems.unshift({ path: "limiter", message: `${show(limiter)} is not a limiter`, accepted })
  }
  if (problems.length > 0) throw new InvalidOptionError(problems)
  const { maxWaiting = 10_000, batchSize = 500, ...others }: RecordOptions = good
  return {
    maxWaiting,
    // A larger batch could never fill up.
    batchSize: Math.min(batchSize, maxWaiting),
    intervalMs: others.intervalMs ?? 1_000,
    logger: others.logger,
    clock: others.clock ?? steadyClock,
  }
}

/** Options of `close`. */
export interface RecorderCloseOptions {
  /** Longest time to write the records that wait, in milliseconds. Default: 5,000. */
  readonly withinMs?: number | undefined
}

const closeShape = strict("the options of close()", { withinMs: interval })

/** Returns the time for `close` in milliseconds. Throws {@link InvalidOptionError}. */
export function parseCloseOptions(value: unknown): number {
  const { good, problems } = readShape(closeShape, value)
  if (problems.length > 0) throw new InvalidOptionError(problems.map((problem) => locate("", problem)))
  return (good as RecorderCloseOptions).withinMs ?? 5_000
}
