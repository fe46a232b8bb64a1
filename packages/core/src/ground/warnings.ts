import { errorWithoutCredentials, withoutCredentials } from "./credentials.ts"
import { isWorker } from "./runtime.ts"

/**
 * The code of a problem that the app should fix although requests are still served. A limiter or a rule book emits each
 * warning once per cause. Each code has a page in docs/errors, which the package contains as `errors/`.
 */
export type WarningCode =
  | "SLUICE_FORWARDED_HEADER_IGNORED"
  | "SLUICE_FORWARDED_HEADER_MISSING"
  | "SLUICE_PROXY_NOT_TRUSTED"
  | "SLUICE_ADDRESS_UNKNOWN"
  | "SLUICE_CREATED_IN_HANDLER"
  | "SLUICE_MOUNTED_TWICE"
  | "SLUICE_MOUNTED_TOO_LATE"
  | "SLUICE_SAME_NAME"
  | "SLUICE_CLIENT_CHOSEN_FIELD"
  | "SLUICE_WINDOW_WITHOUT_UNIT"
  | "SLUICE_MANY_WINDOWS"
  | "SLUICE_RULE_WITHOUT_FIELD"
  | "SLUICE_RULE_NEEDS_NODE"
  | "SLUICE_METHOD_UNKNOWN"
  | "SLUICE_PATH_DOUBTFUL"
  | "SLUICE_BODY_NOT_PARSED"
  | "SLUICE_ROUTE_UNKNOWN"
  | "SLUICE_EXTRACTOR_FAILED"
  | "SLUICE_FIELD_MISSING"
  | "SLUICE_INVALID_COST"
  | "SLUICE_UNIT_UNKNOWN"
  | "SLUICE_CANNOT_RELEASE"
  | "SLUICE_INVALID_LIMIT"
  | "SLUICE_CALLBACK_FAILED"
  | "SLUICE_INVALID_OPTION"
  | "SLUICE_RULES_REJECTED"
  | "SLUICE_RULES_STALE"
  | "SLUICE_RULES_RECOVERED"
  | "SLUICE_RULES_REMOVED"
  | "SLUICE_STORE_TOO_SMALL"
  | "SLUICE_STORE_EVICTS"
  | "SLUICE_STORE_CLOCK_BACK"
  | "SLUICE_REFUND_LOST"
  | "SLUICE_PERMITS_LOST"
  | "SLUICE_CHARGES_LOST"
  | "SLUICE_RECORDS_LOST"
  | "SLUICE_STORE_TIMEOUTS"
  | "SLUICE_SERIES_LIMIT"
  | "SLUICE_DASHBOARD_CLOSED"
  | "SLUICE_DASHBOARD_GUESSED"
  | "SLUICE_DEFAULT_SERVICE"
  | "SLUICE_LIMIT_PER_WORKER"
  | "SLUICE_DEGRADED"
  | "SLUICE_DEGRADED_FURTHER"
  | "SLUICE_RECOVERED"

/** A warning as passed to listeners. */
export interface Warning {
  /** A stable identifier for programs, which is also the title of its page in docs/errors. */
  readonly code: WarningCode
  /** The problem with its values, and how to fix it. */
  readonly message: string
  /** The error that was caught. Absent if no error was caught. */
  readonly cause?: unknown
}

/** The destination of warnings: pino, or any object with the same two methods. */
export interface Logger {
  /** Logs a problem that the app should fix although requests are still served. */
  warn(fields: LogFields, message: string): void
  /**
   * Logs a problem that needs attention immediately: the shared store is down, or rules cannot be read or were
   * rejected.
   */
  error(fields: LogFields, message: string): void
}

/** The fields that a logger gets in addition to the message. */
export interface LogFields {
  /** The warning's code: `"SLUICE_DEGRADED"`. */
  readonly code: string
  /** The error that was caught. This member is called `err` because pino prints errors under this name. */
  readonly err?: unknown
}

/** An emitter of coded warnings. */
export interface Warner {
  /** Emits a warning unless this code has been emitted for this `subject` before. */
  once(code: WarningCode, message: string, subject?: string, cause?: unknown): void
  /** True if `once` has emitted a warning with this code for this `subject`. */
  has(code: WarningCode, subject: string): boolean
  /** Emits the warning. */
  say(level: "warn" | "error", code: WarningCode, message: string, cause?: unknown): void
}

/** Creates a warner that uses the app's logger, or `process.emitWarning`, which prints the code with the warning. */
export function createWarner(logger: Logger | undefined, onWarning: (warning: Warning) => void): Warner {
  const said = new Set<string>()
  const warner: Warner = {
    once(code, message, subject = "", cause) {
      const key = `${code} ${subject}`
      if (said.has(key)) return
      said.add(key)
      warner.say("warn", code, message, cause)
    },
    has: (code, subject) => said.has(`${code} ${subject}`),
    say(level, code, said, thrown) {
      // An error from the app or a store may contain the URL of a connection.
      const [message, cause] = [withoutCredentials(said), errorWithoutCredentials(thrown)]
      const docs = `${message} (@sluice/core/errors/${code.toLowerCase()}.md)`
      log(logger, level, code, docs, cause)
      onWarning(cause === undefined ? { code, message } : { code, message, cause })
    },
  }
  return warner
}

/** Emits a process warning. In a Worker, which does not print process warnings, writes to the console instead. */
export function emitWarning(message: string, code?: WarningCode): void {
  if (isWorker()) console.warn(`${code === undefined ? "" : `[${code}] `}SluiceWarning: ${message}`)
  else process.emitWarning(message, { type: "SluiceWarning", code })
}

/**
 * Logs to the app's logger. Emits a process warning instead if there is no logger, or if it throws or rejects. A
 * failing logger must not make the request fail.
 */
function log(
  logger: Logger | undefined,
  level: keyof Logger,
  code: WarningCode,
  message: string,
  cause: unknown,
): void {
  const emit = (): void => emitWarning(message, code)
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

const warners = new WeakMap<object, Warner>()

/**
 * Emits a warning once per logger. Use this function for a mistake that creates a new limiter each time, because a
 * new limiter does not know which warnings earlier limiters have emitted.
 */
export function warnOncePerLogger(logger: Logger | undefined, code: WarningCode, message: string): void {
  const warner = warners.get(logger ?? process) ?? createWarner(logger, () => undefined)
  warners.set(logger ?? process, warner)
  warner.once(code, message)
}
