import { errorWithoutCredentials, withoutCredentials } from "./credentials.ts"

/**
 * Things that an app should mend, though requests go on. Each is said once for each cause by a limiter or a rule book and
 * has a heading in @sluice/core/errors.md.
 */
export type WarningCode =
  | "SLUICE_FORWARDED_HEADER_IGNORED"
  | "SLUICE_ADDRESS_UNKNOWN"
  | "SLUICE_CREATED_IN_HANDLER"
  | "SLUICE_MOUNTED_TWICE"
  | "SLUICE_MOUNTED_TOO_LATE"
  | "SLUICE_SAME_NAME"
  | "SLUICE_CLIENT_CHOSEN_FIELD"
  | "SLUICE_WINDOW_WITHOUT_UNIT"
  | "SLUICE_METHOD_UNKNOWN"
  | "SLUICE_PATH_DOUBTFUL"
  | "SLUICE_BODY_NOT_PARSED"
  | "SLUICE_ROUTE_UNKNOWN"
  | "SLUICE_EXTRACTOR_FAILED"
  | "SLUICE_INVALID_COST"
  | "SLUICE_INVALID_LIMIT"
  | "SLUICE_CALLBACK_FAILED"
  | "SLUICE_INVALID_OPTION"
  | "SLUICE_RULES_REJECTED"
  | "SLUICE_RULES_STALE"
  | "SLUICE_RULES_RECOVERED"
  | "SLUICE_STORE_TOO_SMALL"
  | "SLUICE_REFUND_LOST"
  | "SLUICE_STORE_TIMEOUTS"
  | "SLUICE_DEFAULT_SERVICE"
  | "SLUICE_LIMIT_PER_WORKER"
  | "SLUICE_DEGRADED"
  | "SLUICE_RECOVERED"

/** A warning as listeners get it. */
export interface Warning {
  /** Says which one it is, for programs, and is its heading in @sluice/core/errors.md. */
  readonly code: WarningCode
  /** What is wrong, with its values, and what to do. */
  readonly message: string
  /** What led to it: the error that was caught. Absent where there was none. */
  readonly cause?: unknown
}

/** Where warnings go: pino, or anything with the same two methods. */
export interface Logger {
  /** Takes a warning: an app should mend what it names, though requests go on. */
  warn(fields: LogFields, message: string): void
  /** Takes what an operator should see at once: the shared store is gone, or rules cannot be read or taken. */
  error(fields: LogFields, message: string): void
}

/** What a logger gets beside the message. */
export interface LogFields {
  /** The warning's code: `"SLUICE_DEGRADED"`. */
  readonly code: string
  /** What led to it, under the name by which pino prints errors. */
  readonly err?: unknown
}

/** Says coded warnings, each once. */
export interface Warner {
  /** Says it unless this code has been said of this `subject` before. */
  once(code: WarningCode, message: string, subject?: string, cause?: unknown): void
  /** Says it. */
  say(level: "warn" | "error", code: WarningCode, message: string, cause?: unknown): void
}

/** Warnings by `process.emitWarning`, which prints them with their code, or to the app's logger. */
export function createWarner(logger: Logger | undefined, onWarning: (warning: Warning) => void): Warner {
  const said = new Set<string>()
  const warner: Warner = {
    once(code, message, subject = "", cause) {
      const key = `${code} ${subject}`
      if (said.has(key)) return
      said.add(key)
      warner.say("warn", code, message, cause)
    },
    say(level, code, said, thrown) {
      // What an app or a store has thrown may name the URL of a connection.
      const [message, cause] = [withoutCredentials(said), errorWithoutCredentials(thrown)]
      const docs = `${message} (@sluice/core/errors.md#${code.toLowerCase()})`
      log(logger, level, code, docs, cause)
      onWarning(cause === undefined ? { code, message } : { code, message, cause })
    },
  }
  return warner
}

/**
 * To the app's logger, or, where there is none or it fails, at once or later, to the process: it must not hurt the request that it is
 * told about.
 */
function log(
  logger: Logger | undefined,
  level: keyof Logger,
  code: WarningCode,
  message: string,
  cause: unknown,
): void {
  const emit = (): void => process.emitWarning(message, { type: "SluiceWarning", code })
  if (logger === undefined) {
    emit()
    return
  }
  try {
    const yielded: unknown = logger[level]({ code, ...(cause === undefined ? {} : { err: cause }) }, message)
    if (yielded instanceof Promise) yielded.catch(emit)
  } catch {
    emit()
  }
}

const saidByLogger = new WeakMap<object, Set<WarningCode>>()

/** For a mistake that makes a new limiter each time, whose own memory of what it said is no use. */
export function warnOncePerLogger(logger: Logger | undefined, code: WarningCode, message: string): void {
  const said = saidByLogger.get(logger ?? process) ?? new Set()
  saidByLogger.set(logger ?? process, said)
  if (said.has(code)) return
  said.add(code)
  createWarner(logger, () => undefined).say("warn", code, message)
}
