import { existsSync, readFileSync, statSync } from "node:fs"
import { resolve } from "node:path"
import { type AlgorithmName, InvalidOptionError } from "@sluice/core"
import { createReplay } from "@sluice/core/replay"
import type { Io } from "../io.ts"
import { tinted } from "../line.ts"
import { type LogOptions, readLogOptionsOf } from "../log-options.ts"
import type { Logs } from "../logs/log.ts"
import { readLogs } from "../logs/read-logs.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"
import { replaceFile } from "../replace-file.ts"
import type { Bound } from "../replay/bounds.ts"
import { ClientTable } from "../replay/client-table.ts"
import { LogsReplay } from "../replay/logs-replay.ts"
import { NeverList } from "../replay/never-list.ts"
import { ReadingProgress } from "../replay/progress.ts"
import { resultOf } from "../replay/replay-result.ts"
import type { ReplayResult } from "../replay/result.ts"
import { resultLines } from "../replay/text.ts"
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
export interface ReplayCommandOptions extends ReadOptions, LogOptions {
  readonly service?: readonly string[]
  readonly against?: string
  readonly algorithm?: readonly string[]
  readonly maxRefused?: Bound
  readonly maxRefusedClients?: Bound
  readonly maxNewlyRefused?: Bound
  readonly never?: string
  readonly report?: string
  readonly hashKeys?: boolean
  readonly skipUnjudged?: boolean
  readonly maxKeys?: number
  readonly slightly?: number
  readonly far?: number
}

/** More than enough for 5 million clients under three rules. The store takes memory only for counters in use. */
const DEFAULT_MAX_KEYS = 20_000_000

/** Runs `sluice rules replay RULES LOG...`: shows what the rules would have refused. */
export async function replay(
  rulesName: string,
  logNames: readonly string[],
  options: ReplayCommandOptions,
  io: Io,
): Promise<CommandOutcome> {
  requireOneInput(rulesName, logNames, options.against)
  requireRulesFirst(rulesName, logNames)
  const { against, maxNewlyRefused, never, trustedProxies, clientIpHeader, ipv6Prefix } = options
  if (maxNewlyRefused !== undefined && against === undefined)
    throw new UsageError("--max-newly-refused needs --against: give the rules to compare with")
  const { slightly = 1.5, far = 5 } = options
  if (slightly > far)
    throw new UsageError(`--slightly ${slightly} is more than --far ${far}: give a smaller number`)

  for (const algorithm of options.algorithm ?? []) requireAlgorithm(algorithm)

  if (options.report !== undefined)
    requireReportPath(options.report, [rulesName, against, never, ...logNames])
  const files = [await readRulesFile(rulesName, options, io)]
  if (against !== undefined) files.push(await readRulesFile(against, options, io))
  const wrong = files.find(({ problems }) => problems.length > 0)
  if (wrong !== undefined) return refusal(wrong)
  const [document, before] = files.map((file) => onlyDocument(file, options.service))

  const clients = new ClientTable()
  const neverList = never === undefined ? undefined : NeverList.ofFile(never)
  const replayed = new LogsReplay({
    service: (document as OwnedDocument).service,
    rules: (document as OwnedDocument).rules,
    against: before && { name: (files[1] as ReadFile).name, rules: before.rules },
    algorithms: options.algorithm,
    address: { trustedProxies, clientIpHeader, ipv6Prefix },
    thresholds: { slightly, far },
    maxKeys: options.maxKeys ?? DEFAULT_MAX_KEYS,
    never: neverList,
    clients,
  })
  const logs = readLogs(logNames, readLogOptionsOf(options), io)
  await readAll(logs, replayed, io)
  const result = resultOf(logs.summary, replayed, {
    bounds: { ...options, never: neverList },
    clients,
    hashKeys: options.hashKeys === true,
    skipUnjudged: options.skipUnjudged === true,
    rules: (document as OwnedDocument).rules,
  })
  if (options.report !== undefined) await writeReport(options.report, result)
  return outcomeOf(result, logs, options)
}

function requireAlgorithm(algorithm: string): void {
  try {
    createReplay({
      rules: [{ field: "ip", limit: 1, window: "1 minute", algorithm: algorithm as AlgorithmName }],
    })
  } catch (error) {
    const [problem] = error instanceof InvalidOptionError ? error.problems : []
    throw new UsageError(`--algorithm: ${problem?.message}; expected ${problem?.accepted}`, { cause: error })
  }
}

async function readAll(logs: Logs, replayed: LogsReplay, io: Io): Promise<void> {
  const progress = new ReadingProgress(io, logs.summary)
  try {
    for await (const records of logs) {
      replayed.offer(records, logs.summary.resolutionMs)
      progress.update()
    }
  } finally {
    progress.end()
  }
}

/** Returns the only document. The requests in a log belong to one service, so several would be a mistake. */
function onlyDocument(file: ReadFile, services: readonly string[] | undefined): OwnedDocument {
  const [first, ...others] = file.documents
  if (first === undefined) throw new UsageError(`${file.name} has no rules: add some`)
  // The service is only a part of the names of counters, so a file without one can be replayed.
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

/** Rejects a log in the place of the rules. Its size or its text would be reported, which does not lead to the mistake. */
function requireRulesFirst(rules: string, logs: readonly string[]): void {
  const swapped = logs.find(
    (log) => /\.ya?ml$/i.test(log) || (/\.json$/i.test(log) && /\.(?:log|gz|zst)\b/i.test(rules)),
  )
  if (swapped === undefined || /\.(?:ya?ml|json)$/i.test(rules)) return
  throw new UsageError(`${rules} is in the place of the rules: give ${swapped} first, and then the logs`)
}

/** Rejects a report that would replace an input, or a file that is not a report: a shell may have put a log there. */
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

async function writeReport(path: string, result: ReplayResult): Promise<void> {
  // Loaded on demand, because the report contains a library for plots.
  const { reportHtml } = await import("../report/report-html.ts")
  await replaceFile(path, reportHtml(result))
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
      ...resultLines(result, logs.summary),
      ...(report === undefined ? [] : [tinted("quiet", `The report is in ${report}.`)]),
    ],
    warnings: unparsedLines(logs.summary, hashKeys === true),
    errors: problems.map((problem) => tinted("bad", `error: ${problem}`)),
  }
}
