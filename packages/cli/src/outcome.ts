import type { OutputLine } from "./line.ts"

/** The exit codes of the program, as shown by `sluice --help`. */
export const EXIT = {
  ok: 0,
  /**
   * Rules are invalid, file and table differ, another writer changed the table, or the decision service refused a
   * call.
   */
  problems: 1,
  /** The command line is invalid, or a file that it names cannot be used. */
  usage: 2,
  /** The table or the decision service did not respond or failed, or the store of the service did not respond. */
  unreachable: 3,
  /** A bug in the program. */
  unexpected: 4,
} as const

/** One of the values of `EXIT`. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** The result of a command, for people and for programs. The runner prints it. */
export interface CommandOutcome {
  readonly exitCode: ExitCode
  /** Standard output with `--json`. */
  readonly json: unknown
  /** Standard output without `--json`: lines, or a text that is printed unchanged. */
  readonly text: readonly OutputLine[] | string
  /** Standard error without `--json`: why the exit code is not 0. */
  readonly errors?: readonly OutputLine[]
  /** Standard error, both with and without `--json`. */
  readonly warnings?: readonly OutputLine[]
}
