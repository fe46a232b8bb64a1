import {
  InvalidOptionError,
  InvalidRuleError,
  RuleSourceError,
  SluiceError,
  StoreUnavailableError,
  withoutCredentials,
} from "@sluice/core"
import { RuleConflictError } from "@sluice/rules"
import { CommanderError } from "commander"
import type { Io } from "./io.ts"
import { errorLines, formatJson, formatLine, hasColour, type OutputLine, tinted } from "./line.ts"
import { type CommandOutcome, EXIT, type ExitCode } from "./outcome.ts"
import { createProgram } from "./program.ts"
import { ServiceCallError } from "./service-call.ts"
import { UsageError } from "./usage-error.ts"

/** Runs a command line (without the program's name) and returns the exit code. Never rejects. */
export async function run(argv: readonly string[], io: Io): Promise<ExitCode> {
  const isJson = argv.slice(0, [...argv, "--"].indexOf("--")).includes("--json")
  const outcomes: CommandOutcome[] = []
  const said: string[] = []
  const program = createProgram(
    io,
    (outcome) => outcomes.push(outcome),
    (text) => io.stdout.write(text),
    (text) => said.push(text),
  )
  try {
    await program.parseAsync(argv, { from: "user" })
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT.ok
    outcomes.push(failed(error, said.join(""), io))
  }
  for (const outcome of outcomes) print(outcome, isJson, io)
  return outcomes[0]?.exitCode ?? EXIT.ok
}

function print({ json, text, errors = [], warnings = [] }: CommandOutcome, isJson: boolean, io: Io): void {
  const put = (stream: "stdout" | "stderr", lines: readonly OutputLine[]): void => {
    const isColoured = hasColour(io[stream], io.env)
    for (const line of lines) io[stream].write(`${formatLine(line, isColoured)}\n`)
  }
  if (isJson) io.stdout.write(`${formatJson(json, 2)}\n`)
  else if (typeof text === "string") io.stdout.write(text)
  else put("stdout", text)
  put("stderr", isJson ? warnings : [...warnings, ...errors])
}

/** Returns the outcome for an error. `said` is the text that commander has written about the error. */
function failed(error: unknown, said: string, io: Io): CommandOutcome {
  if (error instanceof CommanderError) {
    // `said` already contains the whole message, or the help if no command is given.
    const text = withoutCredentials(said.trimEnd())
    return outcome(EXIT.usage, "SLUICE_USAGE", text.replace(/^error: /, ""), text.split("\n"))
  }
  const exitCode = exitCodeOf(error)
  const message = withoutCredentials(error instanceof Error ? error.message : String(error))
  const stack = io.env.SLUICE_DEBUG === "1" && error instanceof Error ? String(error.stack).split("\n") : []
  if (exitCode === EXIT.unexpected) {
    const line = `a bug in sluice: ${message}; please report it with the output of SLUICE_DEBUG=1`
    return outcome(exitCode, "SLUICE_UNEXPECTED", line, [tinted("bad", `error: ${line}`), ...stack])
  }
  return outcome(exitCode, (error as SluiceError).code, message, [...errorLines(message), ...stack])
}

function outcome(
  exitCode: ExitCode,
  code: string,
  message: string,
  errors: readonly OutputLine[],
): CommandOutcome {
  return { exitCode, json: { ok: false, error: { code, message } }, text: [], errors }
}

function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof InvalidRuleError || error instanceof RuleConflictError) return EXIT.problems
  if (error instanceof UsageError || error instanceof InvalidOptionError) return EXIT.usage
  // Recognize a LogError by its code, because its class is only loaded by commands that read logs.
  if (error instanceof SluiceError && error.code === "SLUICE_LOG") return EXIT.usage
  if (error instanceof ServiceCallError) return error.isUnreachable ? EXIT.unreachable : EXIT.problems
  if (error instanceof RuleSourceError || error instanceof StoreUnavailableError) return EXIT.unreachable
  return EXIT.unexpected
}
