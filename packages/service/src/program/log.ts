import { InvalidRuleError, RuleSourceError, StoreUnavailableError } from "@sluice/core"
import { type DestinationStream, destination, type Logger, pino } from "pino"

/** Log levels, from the fewest lines to the most. */
export const LOG_LEVELS = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const

/** A log level. */
export type LogLevel = (typeof LOG_LEVELS)[number]

/** A logger that writes structured JSON lines. */
export type Log = Logger

/**
 * Creates a logger that writes to standard output. Only safe properties of an error are logged, because a Redis
 * client attaches commands to its errors, which contain passwords and keys. The stack is omitted for invalid rules,
 * and for a source or store that does not respond.
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

/** Maximum bytes of log lines that wait while nothing can be written. Further lines are lost. */
const MOST_WAITING_BYTES = 1_048_576

/**
 * Returns standard output, which writes each line as soon as it is logged. If a write fails because the disk is full
 * or the reader has exited, the line waits for the next write or is lost. Decisions continue without a log.
 */
function standardOutput(): DestinationStream {
  const output = destination({
    dest: 1,
    sync: true,
    maxLength: MOST_WAITING_BYTES,
    // Never retry, because a retry would run immediately and block everything else.
    retryEAGAIN: () => false,
  })
  output.on("error", () => undefined)
  // Prevent pino from flushing after a fatal line, because flushing blocks until it succeeds. Every line that can be
  // written has already been written.
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

/** Maximum depth of nested causes. This depth is enough for all known errors, and stops at circular causes. */
const MOST_CAUSES = 5

/**
 * Errors with a cause outside of the program, such as rules, a table or Redis. The stack of such an error would not
 * help.
 */
const OUTSIDE = [InvalidRuleError, RuleSourceError, StoreUnavailableError]

function shownError(
  error: unknown,
  depth = 0,
  hasStack = !OUTSIDE.some((of) => error instanceof of),
): ShownError {
  if (!(error instanceof Error)) return { type: typeof error, message: String(error) }
  const { name, message, stack } = error
  // `lastNodeError` of ioredis explains why no node of a cluster could be used.
  const { code, lastNodeError, cause = lastNodeError } = error as ErrorOfClient
  return {
    type: name,
    ...(code !== undefined && { code }),
    message,
    ...(hasStack && { stack }),
    ...(cause !== undefined && depth < MOST_CAUSES && { cause: shownError(cause, depth + 1, hasStack) }),
  }
}
