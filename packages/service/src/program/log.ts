import { InvalidRuleError, RuleSourceError, StoreUnavailableError } from "@sluice/core"
import { type DestinationStream, destination, type Logger, pino } from "pino"

/** How much is logged, from least to most. */
export const LOG_LEVELS = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const

/** One of `LOG_LEVELS`. */
export type LogLevel = (typeof LOG_LEVELS)[number]

/** Structured lines of JSON. */
export type Log = Logger

/**
 * Logs lines to standard output. Of an error only what is known to be safe is logged: a client of Redis puts what it
 * was asked onto its errors, and that has passwords and the names of counters in it. Of wrong rules, and of a source or
 * a store that does not answer, the stack is left out.
 */
export function createLog(level: LogLevel, to: DestinationStream = standardOutput()): Log {
  return pino(
    {
      level,
      base: null,
      serializers: { err: shownError },
      formatters: { level: (label) => ({ level: label }) },
    },
    to,
  )
}

/** What waits to be written while nothing can be: more is lost. */
const MOST_WAITING_BYTES = 1_048_576

/**
 * Standard output, each line as soon as it is logged. Where it cannot be written, as the disk is full or nobody reads it, lines wait
 * for the next one, or are lost: decisions go on without a log.
 */
function standardOutput(): DestinationStream {
  const output = destination({
    dest: 1,
    sync: true,
    maxLength: MOST_WAITING_BYTES,
    // Tried again it would be at once, and nothing else done meanwhile.
    retryEAGAIN: () => false,
  })
  output.on("error", () => undefined)
  // After a fatal line, and as long as it takes: what can be written has been.
  output.flushSync = () => undefined
  return output
}

interface ShownError {
  readonly type: string
  readonly code?: unknown
  readonly message: string
  readonly stack?: string | undefined
  readonly cause?: ShownError
}

interface ErrorOfClient extends Error {
  readonly code?: unknown
  readonly lastNodeError?: unknown
}

/** Causes of causes: deep enough for any that is met, and an end for those that go round. */
const MOST_CAUSES = 5

/** What is to be mended outside of the program: rules, a table, Redis. Its place in the code says nothing. */
const OUTSIDE = [InvalidRuleError, RuleSourceError, StoreUnavailableError]

function shownError(
  error: unknown,
  depth = 0,
  hasStack = !OUTSIDE.some((of) => error instanceof of),
): ShownError {
  if (!(error instanceof Error)) return { type: typeof error, message: String(error) }
  const { name, message, stack } = error
  // ioredis says by the latter why none of a cluster's nodes could be used.
  const { code, lastNodeError, cause = lastNodeError } = error as ErrorOfClient
  return {
    type: name,
    ...(code !== undefined && { code }),
    message,
    ...(hasStack && { stack }),
    ...(cause !== undefined && depth < MOST_CAUSES && { cause: shownError(cause, depth + 1, hasStack) }),
  }
}
