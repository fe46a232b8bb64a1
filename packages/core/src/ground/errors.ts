import { errorWithoutCredentials, withoutCredentials } from "./credentials.ts"

/** One thing that is wrong with what was given, where it is, and what would be accepted instead. */
export interface Problem {
  /** Where: `rules[0].window` in code, `service "checkout" rules[0].rate.unit` in a document. Empty for the whole. */
  readonly path: string
  /** What is wrong, naming the value: `"5 minuts" is not a window`. */
  readonly message: string
  /** What would be accepted: `a positive whole number of milliseconds, or a text such as "90 seconds"`. */
  readonly accepted?: string
  /** Name of the rule that is wrong, if it is known. */
  readonly rule?: string
  /** Line in the file, from 1. Absent if the rules are not in a file. */
  readonly line?: number
  /** Column in the file, from 1, in UTF-16 units. Absent if the rules are not in a file. */
  readonly column?: number
}

/**
 * Every error that Sluice throws: `code` is stable and has a heading in @sluice/core/errors.md. Its message, its cause and its
 * problems contain no password of a connection URL.
 */
export abstract class SluiceError extends Error {
  /** Says which error it is, for programs. It stays the same when messages change. */
  abstract readonly code: string

  /** `options.cause` is what led to it. */
  constructor(message: string, options?: ErrorOptions) {
    super(withoutCredentials(message), withCleanCause(options))
    this.name = new.target.name
  }
}

/** An option is wrong, misspelt or contradicts another one, or an argument is none that is accepted. */
export class InvalidOptionError extends SluiceError {
  readonly code = "SLUICE_INVALID_OPTION"
  /** Everything that is wrong, not only the first: `path` names the option. Not enumerable. */
  declare readonly problems: readonly Problem[]

  /** The message is made of the problems, the first 50 of them; `options.cause` is what led to them. */
  constructor(problems: readonly Problem[], options?: ErrorOptions) {
    super(describe("Wrong options", problems), options)
    attachProblems(this, problems)
  }
}

/** A rule, in code or in a stored document, is wrong: `problems` has all of them. */
export class InvalidRuleError extends SluiceError {
  readonly code = "SLUICE_INVALID_RULE"
  /** Everything that is wrong, not only the first: `path` leads to the member of the rule. Not enumerable. */
  declare readonly problems: readonly Problem[]

  /** The message is made of the problems, the first 50 of them; `options.cause` is what led to them. */
  constructor(problems: readonly Problem[], options?: ErrorOptions) {
    super(describe("Wrong rules", problems), options)
    attachProblems(this, problems)
  }
}

/** The rules could not be read at all: no such file, not YAML, no answer. `cause` is the underlying error. */
export class RuleSourceError extends SluiceError {
  readonly code = "SLUICE_RULE_SOURCE"
  /** What is wrong with a document that was read and cannot be parsed. Empty if nothing could be read. Not enumerable. */
  declare readonly problems: readonly Problem[]

  /** `options.cause` is the underlying error. */
  constructor(
    message: string,
    options: ErrorOptions & {
      /** What is wrong with a document that was read and cannot be parsed. Default: none. */
      readonly problems?: readonly Problem[] | undefined
    } = {},
  ) {
    super(message, options)
    attachProblems(this, options.problems ?? [])
  }
}

/** How a store failed: there are these four, so they can be counted by. */
export type StoreErrorKind =
  /** It, its client or the connection failed. */
  | "error"
  /** It did not answer in time. */
  | "timeout"
  /** It was not asked, since it has not answered for a while: nobody waited for it. */
  | "unavailable"
  /** It answered what makes no sense. */
  | "invalid-answer"

/** Whether a call that failed has changed anything in the store. */
export type StoreOutcome =
  /** The call has certainly changed nothing, so it can be made again. */
  | "not-applied"
  /** The call may have been carried out, wholly or in part. To refund again could give units back twice. */
  | "unknown"

/** The store cannot answer. A store rejects with this and only when its back end broke, never because of a limit. */
export class StoreUnavailableError extends SluiceError {
  readonly code = "SLUICE_STORE_UNAVAILABLE"
  /** How it failed: what errors are counted by. */
  readonly kind: StoreErrorKind
  /** Whether the call may have been carried out, which decides whether a refund can be called again. */
  readonly outcome: StoreOutcome

  /** `options.cause` is what led to it. */
  constructor(
    message: string,
    options: ErrorOptions & {
      /** How it failed: default "error". */
      readonly kind?: StoreErrorKind | undefined
      /** Whether the call may have been carried out: default "unknown", which is always safe. */
      readonly outcome?: StoreOutcome | undefined
    } = {},
  ) {
    super(message, options)
    this.kind = options.kind ?? "error"
    this.outcome = options.outcome ?? "unknown"
  }
}

/** The limiter, or what it is made of, has been closed. */
export class ClosedError extends SluiceError {
  readonly code = "SLUICE_CLOSED"
}

function withCleanCause(options: ErrorOptions | undefined): ErrorOptions | undefined {
  // An error has a member "cause" only where one was given.
  return options === undefined || !("cause" in options)
    ? options
    : { cause: errorWithoutCredentials(options.cause) }
}

/** What was thrown or yielded, as a text for a message. Never throws itself, whatever it is given. */
export function textOf(value: unknown): string {
  try {
    return String(value)
  } catch {
    // An object without a prototype, or with a toString of its own that fails.
    return `an unprintable ${typeof value}`
  }
}

/** The text with a period at its end, so that another sentence can follow. */
export function sentenceOf(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`
}

/** Not enumerable, because Node and loggers print enumerable members of an error, and the message already has each problem. */
function attachProblems(error: SluiceError, problems: readonly Problem[]): void {
  Object.defineProperty(error, "problems", { value: problems.map(problemWithoutCredentials) })
}

/** Returns the problem without secrets in its texts: the same object if it has none, by which it is known to be reported. */
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

/** Problems that a message tells one by one: a file whose format is another one has thousands. */
const MOST_TOLD = 50

function describe(title: string, problems: readonly Problem[]): string {
  const lines = problems.slice(0, MOST_TOLD).map(({ path, line, column, message, accepted }) => {
    const at = line === undefined ? path : `${path} (line ${line}, column ${column})`.trimStart()
    const where = at === "" ? "" : `${at}: `
    return `${where}${message}${accepted === undefined ? "" : `; accepted: ${accepted}`}`
  })
  if (problems.length > MOST_TOLD) lines.push(`and ${problems.length - MOST_TOLD} more`)
  return lines.length === 1
    ? `${title}: ${lines[0]}`
    : `${title}:\n${lines.map((line) => `  - ${line}`).join("\n")}`
}
