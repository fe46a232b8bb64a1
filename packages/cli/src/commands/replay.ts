import { existsSync, readFileSync, statSync } from "node:fs"
import { resolve } from "node:path"
import {
  type Logs,
  type ReplayLogsOptions,
  type ReplayResult,
  readLogs,
  replayLines,
  replayLogs,
  replayReport,
} from "@sluice/logs"
import type { Io } from "../io.ts"
import { tinted } from "../line.ts"
import { type LogOptions, readLogOptionsOf } from "../log-options.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"
import { withProgress } from "../progress.ts"
import { replaceFile } from "../replace-file.ts"
import {
  documentsOf,
  type OwnedDocument,
  type ReadFile,
  type ReadOptions,
  readRulesFile,
} from "../rules-file.ts"
import { UsageError } from "../usage-error.ts"
import { refusal } from "./check.ts"
import { unparsedLines } from "./unparsed-lines.ts"

/** Options of `sluice rules replay`. */
export interface ReplayCommandOptions
  extends ReadOptions,
    LogOptions,
    Pick<ReplayLogsOptions, "maxRefused" | "maxRefusedClients" | "maxNewlyRefused" | "maxKeys">,
    Pick<ReplayLogsOptions, "slightly" | "far" | "hashKeys" | "skipUnjudged"> {
  readonly service?: readonly string[]
  readonly against?: string
  readonly algorithm?: ReplayLogsOptions["algorithms"]
  readonly never?: string
  readonly report?: string
}

/** Runs `sluice rules replay RULES LOG...`: shows what the rules would have refused. */
export async function replay(
  rulesName: string,
  logNames: readonly string[],
  options: ReplayCommandOptions,
  io: Io,
): Promise<CommandOutcome> {
  requireOneInput(rulesName, logNames, options.against)
  requireRulesFirst(rulesName, logNames)
  const { against, never } = options
  if (options.report !== undefined)
    requireReportPath(options.report, [rulesName, against, never, ...logNames])
  const files = [await readRulesFile(rulesName, options, io)]
  if (against !== undefined) files.push(await readRulesFile(against, options, io))
  const wrong = files.find(({ problems }) => problems.length > 0)
  if (wrong !== undefined) return refusal(wrong)
  const [document, before] = files.map((file) => onlyDocument(file, options.service))
  const { service, rules } = document as OwnedDocument
  const list = never === undefined ? undefined : { name: never, text: readNever(never) }
  const logs = readLogs(logNames, readLogOptionsOf(options), io)
  const { trustedProxies, clientIpHeader, ipv6Prefix, algorithm: algorithms, maxKeys } = options
  const { maxRefused, maxRefusedClients, maxNewlyRefused, slightly, far, hashKeys, skipUnjudged } = options
  const result = await replayLogs(withProgress(logs, io), {
    ...{ service, rules, algorithms, never: list, maxKeys, slightly, far, hashKeys, skipUnjudged },
    ...{ maxRefused, maxRefusedClients, maxNewlyRefused, trustedProxies, clientIpHeader, ipv6Prefix },
    against: before && { name: (files[1] as ReadFile).name, rules: before.rules },
  })
  if (options.report !== undefined) await replaceFile(options.report, replayReport(result))
  return outcomeOf(result, logs, options)
}

function readNever(path: string): string {
  try {
    return readFileSync(path, "utf8")
  } catch (error) {
    throw new UsageError(`--never: ${path} cannot be read: ${(error as Error).message}`, { cause: error })
  }
}

/** Returns the only document. The requests in a log belong to one service, so several documents would be a mistake. */
function onlyDocument(file: ReadFile, services: readonly string[] | undefined): OwnedDocument {
  const [first, ...others] = file.documents
  if (first === undefined) throw new UsageError(`${file.name} has no rules: add some`)
  // A document without a service can be replayed, because the service is only used in the names of counters.
  if (services === undefined && others.length === 0) return { ...first, service: first.service ?? "default" }
  const [document, other] = documentsOf(file, services)
  if (document === undefined || other !== undefined)
    throw new UsageError(
      `${file.name} has rules of several services: name the service of the log with --service`,
    )
  return document
}

function requireOneInput(rules: string, logs: readonly string[], against: string | undefined): void {
  const inputs = [rules, against, ...logs].filter((name) => name === "-")
  if (inputs.length > 1)
    throw new UsageError("standard input is given twice: give the name of a file instead of one of the -")
}

/**
 * Rejects a log that is given instead of the rules. Otherwise, the error would be about the size or syntax of the log,
 * which does not reveal the mistake.
 */
function requireRulesFirst(rules: string, logs: readonly string[]): void {
  const swapped = logs.find(
    (log) => /\.ya?ml$/i.test(log) || (/\.json$/i.test(log) && /\.(?:log|gz|zst)\b/i.test(rules)),
  )
  if (swapped === undefined || /\.(?:ya?ml|json)$/i.test(rules)) return
  throw new UsageError(`${rules} is in the place of the rules: give ${swapped} first, and then the logs`)
}

/**
 * Rejects a report that would replace an input, or a file that is not a report. For example, a shell's wildcard may
 * have inserted a log there.
 */
function requireReportPath(path: string, inputs: readonly (string | undefined)[]): void {
  const isInput = inputs.some((name) => name !== undefined && name !== "-" && resolve(name) === resolve(path))
  if (isInput)
    throw new UsageError(`--report: ${path} is read by this command: give the name of another file`)
  if (!existsSync(path) || !statSync(path).isFile() || statSync(path).size === 0) return
  const start = readFileSync(path).subarray(0, 15).toString("latin1").toLowerCase()
  if (start !== "<!doctype html>")
    throw new UsageError(
      `--report: ${path} exists and is not a report: remove it, or give the name of another file`,
    )
}

function outcomeOf(
  result: ReplayResult,
  logs: Logs,
  { hashKeys, report }: ReplayCommandOptions,
): CommandOutcome {
  const { problems, ok } = result
  return {
    exitCode: problems.length > 0 ? EXIT.usage : ok ? EXIT.ok : EXIT.problems,
    json: result,
    text: [
      ...replayLines(result, logs.summary),
      ...(report === undefined ? [] : [tinted("quiet", `The report is in ${report}.`)]),
    ],
    warnings: unparsedLines(logs.summary, hashKeys === true),
    errors: problems.map((problem) => tinted("bad", `error: ${problem}`)),
  }
}
