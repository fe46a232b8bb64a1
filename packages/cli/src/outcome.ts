import type { OutputLine } from "./line.ts"

/** How the program ends; `sluice --help` tells the user the same. */
export const EXIT = {
  ok: 0,
  /** Rules are wrong, file and table differ, somebody else has changed the table, or the decision service refused a call. */
  problems: 1,
  /** The command line, or a file that it names, cannot be used. */
  usage: 2,
  /** The table, or the decision service, could not be reached, read or written. */
  unreachable: 3,
  /** A mistake of the program itself. */
  unexpected: 4,
} as const

/** One of `EXIT`. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** What a command has found or done, for people and for programs. The runner prints it. */
export interface CommandOutcome {
  readonly exitCode: ExitCode
  /** Standard output with `--json`. */
  readonly json: unknown
  /** Standard output without it: lines, or a text that is printed as it is. */
  readonly text: readonly OutputLine[] | string
  /** Standard error, without `--json`: why the exit code is not 0. */
  readonly errors?: readonly OutputLine[]
  /** Standard error, with `--json` too. */
  readonly warnings?: readonly OutputLine[]
}
