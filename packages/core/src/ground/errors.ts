import { acceptOtherCopies } from "./copies.ts"
import { errorWithoutCredentials, withoutCredentials } from "./credentials.ts"

/** One mistake in the input: its place, what is wrong, and what is accepted instead. */
export interface Problem {
  /**
   * The place, such as `rules[0].window` in code or `service "checkout" rules[0].rate.unit` in a document. Empty if
   * the mistake concerns the whole input.
   */
  readonly path: string
  /** The mistake, with the invalid value: `"5 minuts" is not a window`. */
  readonly message: string
  /** The accepted input: `a positive whole number of milliseconds, or a string such as "90 seconds"`. */
  readonly accepted?: string
  /** Name of the invalid rule, if it is known. */
  readonly rule?: string
  /** The path of the file. Absent if the rules are not in a file. */
  readonly file?: string
  /** Line in the file, from 1. Absent if the rules are not in a file. */
  readonly line?: number
  /** Column in the file, from 1, in UTF-16 units. Absent if the rules are not in a file. */
  readonly column?: number
}

/**
 * The base class of all errors that Sluice throws. `code` is stable and has a page in docs/errors. The
 * message, the cause and the problems never contain the password of a connection URL.
 */
export abstract class SluiceError extends Error {
  static {
    acceptOtherCopies(SluiceError)
  }

  /** A stable identifier of the error for programs. The code stays the same when messages change. */
  abstract readonly code: string

  /** `options.cause` is the underlying error. */
  constructor(message: string, options?: ErrorOptions) {
    super(withoutCredentials(message), withCleanCause(options))
    this.name = new.target.name
  }
}

/** An option is invalid, is misspelled or contradicts another option, or an argument is invalid. */
export class InvalidOptionError extends SluiceError {
  readonly code = "SLUICE_INVALID_OPTION"
  /** All problems, not only the first. `path` names the option. Not enumerable. */
  declare readonly problems: readonly Problem[]

  /** Builds the message from the first 50 problems. `options.cause` is the underlying error. */
  constructor(problems: readonly Problem[], options?: ErrorOptions) {
    super(describe("Wrong options", problems), options)
    attachProblems(this, problems)
  }
}

/** A rule in code or in a stored document is invalid. `problems` lists every mistake. */
export class InvalidRuleError extends SluiceError {
  readonly code = "SLUICE_INVALID_RULE"
  /** All problems, not only the first. `path` is the path to the rule's member. Not enumerable. */
  declare readonly problems: readonly Problem[]

  /** Builds the message from the first 50 problems. `options.cause` is the underlying error. */
  constructor(problems: readonly Problem[], options?: ErrorOptions) {
    super(describe("Wrong rules", problems), options)
    attachProblems(this, problems)
  }
}

/** The rules could not be read. For example, the file is missing or is not YAML, or the source did not respond. */
export class RuleSourceError extends SluiceError {
  readonly code = "SLUICE_RULE_SOURCE"
  /**
   * The problems of a document that was read but cannot be parsed. Empty if no document could be read. Not enumerable.
   */
  declare readonly problems: readonly Problem[]

  /** `options.cause` is the underlying error. */
  constructor(
    message: string,
    options: ErrorOptions & {
      /** The problems of a document that was read but cannot be parsed. Default: none. */
      readonly problems?: readonly Problem[] | undefined
    } = {},
  ) {
    super(message, options)
    attachProblems(this, options.problems ?? [])
  }
}

/** The ways in which a store can fail. There are few enough values for a metric label. */
export type StoreErrorKind =
  /** The store, its client or the connection failed. */
  | "error"
  /** The store did not respond in time. */
  | "timeout"
  /** The store was not called, because it has not responded for a while. The call failed without waiting. */
  | "unavailable"
  /** The store's result was invalid. */
  | "invalid-answer"

/** The effect of a failed call on the store. */
export type StoreOutcome =
  /** The call has certainly changed nothing, so it can be retried. */
  | "not-applied"
  /** The call may have been executed completely or partly. Retrying a refund could refund units twice. */
  | "unknown"

/**
 * The store cannot respond. A store rejects with this error only when its back end failed, never because of a limit.
 */
export class StoreUnavailableError extends SluiceError {
  readonly code = "SLUICE_STORE_UNAVAILABLE"
  /** How the store failed. Metrics count errors by this kind. */
  readonly kind: StoreErrorKind
  /** The effect of the call on the store, which determines whether a refund can be retried. */
  readonly outcome: StoreOutcome

  /** `options.cause` is the underlying error. */
  constructor(
    message: string,
    options: ErrorOptions & {
      /** How the store failed. Default: "error". */
      readonly kind?: StoreErrorKind | undefined
      /** The effect of the call. Default: "unknown", which is always safe. */
      readonly outcome?: StoreOutcome | undefined
    } = {},
  ) {
    super(message, options)
    this.kind = options.kind ?? "error"
    this.outcome = options.outcome ?? "unknown"
  }
}

/** The limiter, or a store or rule source that it uses, has been closed. */
export class ClosedError extends SluiceError {
  readonly code = "SLUICE_CLOSED"
}

function withCleanCause(options: ErrorOptions | undefined): ErrorOptions | undefined {
  // Omit an absent cause, because an error must have the member "cause" only if a cause was passed.
  return options === undefined || !("cause" in options)
    ? options
    : { cause: errorWithoutCredentials(options.cause) }
}

/** Converts any value to a string for a message. Never throws. */
export function textOf(value: unknown): string {
  try {
    return String(value)
  } catch {
    // The object has no prototype, or its own toString throws.
    return `an unprintable ${typeof value}`
  }
}

/** Returns the text with a period at the end, so that another sentence can follow. */
export function sentenceOf(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`
}

/**
 * Attaches the problems as a member that is not enumerable. Otherwise Node and loggers would print the problems
 * again, although the message already contains them.
 */
function attachProblems(error: SluiceError, problems: readonly Problem[]): void {
  Object.defineProperty(error, "problems", { value: problems.map(problemWithoutCredentials) })
}

/**
 * Returns the problem without secrets in its strings. Returns the same object if its strings contain no secrets,
 * because callers recognize a reported problem by identity.
 */
export function problemWithoutCredentials(problem: Problem): Problem {
  const hasNone = Object.values(problem).every(
    (value) => typeof value !== "string" || withoutCredentials(value) === value,
  )
  if (hasNone) return problem
  const members = Object.entries(problem).map(([name, value]) => [
    name,
    typeof value === "string" ? withoutCredentials(value) : value,
  ])
  return Object.fromEntries(members) as Problem
}

/** The maximum number of problems in a message. A file in the wrong format can have thousands of problems. */
const MOST_TOLD = 50

function describe(title: string, problems: readonly Problem[]): string {
  const lines = problems.slice(0, MOST_TOLD).map(({ path, line, column, message, accepted }) => {
    const at = line === undefined ? path : `${path} (line ${line}, column ${column})`.trimStart()
    const where = at === "" ? "" : `${at}: `
    return `${where}${message}${accepted === undefined ? "" : `; accepted: ${accepted}`}`
  })
  const file = problems[0]?.file
  const where = file === undefined ? title : `${title} in ${JSON.stringify(file)}`
  if (problems.length > MOST_TOLD) lines.push(`and ${problems.length - MOST_TOLD} more`)
  return lines.length === 1
    ? `${where}: ${lines[0]}`
    : `${where}:\n${lines.map((line) => `  - ${line}`).join("\n")}`
}
