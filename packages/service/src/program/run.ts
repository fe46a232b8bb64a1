import { logVerbosity, setLogVerbosity } from "@grpc/grpc-js"
import { withoutCredentials } from "@sluice/core"
import { CommanderError } from "commander"
import { createLog, type Log } from "./log.ts"
import { createMetrics } from "./metrics.ts"
import { logOpenTelemetry } from "./opentelemetry-log.ts"
import { type Running, start } from "./running.ts"
import { createCommand } from "./settings/command.ts"
import { readSettings, SettingsError, unknownVariables } from "./settings/read-settings.ts"
import type { Settings } from "./settings/settings-table.ts"

const EXIT = { failed: 1, usage: 2 } as const

/** Runs the service with the given command-line arguments until the process ends. */
export async function run(argv: readonly string[], version: string): Promise<void> {
  const settings = settingsOf(argv, version)
  if (settings === undefined) return
  const log = createLog(settings.logLevel)
  endOnFaults(log)
  // Disable the log of grpc-js, because its errors contain the same information.
  setLogVerbosity(logVerbosity.NONE)
  logOpenTelemetry(log)
  const unknown = unknownVariables(process.env)
  if (unknown.length > 0)
    log.warn(
      { variables: unknown },
      "These environment variables are not settings of the service. Correct their names or remove them.",
    )
  let running: Running | undefined
  endOnSignals(log, () => running)
  try {
    running = await start(settings, process.env, log, createMetrics(process.env))
  } catch (error) {
    complain(`error: ${(error as Error).message}`)
    process.exit(EXIT.failed)
  }
}

/**
 * Returns the settings. Returns undefined after it has printed the help or reported invalid settings. Invalid
 * settings also set the exit code.
 */
function settingsOf(argv: readonly string[], version: string): Settings | undefined {
  const said: string[] = []
  const command = createCommand(
    version,
    (text) => process.stdout.write(text),
    (text) => said.push(text),
  )
  try {
    return readSettings(command.parse(argv, { from: "user" }), process.env)
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return undefined
    if (error instanceof CommanderError) complain(said.join("").trimEnd())
    else if (error instanceof SettingsError)
      for (const problem of error.problems) complain(`error: ${problem}`)
    else throw error
    process.exitCode = EXIT.usage
    return undefined
  }
}

function complain(line: string): void {
  // Hide credentials, because an operator may have passed the Redis URL as another argument by mistake.
  process.stderr.write(`${withoutCredentials(line)}\n`)
}

/** Ends the process after an uncaught exception, because the state is unknown. */
function endOnFaults(log: Log): void {
  process.on("uncaughtException", (err) => {
    log.fatal({ err }, "An error was not caught, so the process ends. Report this error with its stack.")
    process.exit(EXIT.failed)
  })
}

/**
 * Drains the service on the first signal. A second signal, or a signal before the service runs, ends the process
 * immediately.
 */
function endOnSignals(log: Log, running: () => Running | undefined): void {
  let isDraining = false
  const end = (signal: "SIGTERM" | "SIGINT"): void => {
    const started = running()
    if (started === undefined) process.exit(0)
    if (isDraining) {
      log.warn({ signal }, "The process ended immediately, because of a second signal.")
      process.exit(EXIT.failed)
    }
    isDraining = true
    log.info({ signal }, "The service is shutting down.")
    started.drain().then((wasInTime) => {
      if (!wasInTime)
        log.error(
          "Calls in flight were aborted, because they took longer than --drain-time. Raise this time if the calls need longer.",
        )
      log.info("The service has ended.")
      process.exit(wasInTime ? 0 : EXIT.failed)
    })
  }
  process.on("SIGTERM", end).on("SIGINT", end)
}
