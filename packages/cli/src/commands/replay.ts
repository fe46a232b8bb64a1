import { writeFile } from "node:fs/promises"
import { type AlgorithmName, InvalidOptionError } from "@sluice/core"
import { createReplay } from "@sluice/core/replay"
import type { Io } from "../io.ts"
import { tinted } from "../line.ts"
import { type LogOptions, readLogOptionsOf } from "../log-options.ts"
import type { Logs } from "../logs/log.ts"
import { readLogs } from "../logs/read-logs.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"
import { type Bound, NeverList } from "../replay/bounds.ts"
import { ClientTable } from "../replay/client-table.ts"
import { LogsReplay } from "../replay/logs-replay.ts"
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
  readonly slightly?: number
  readonly far?: number
}

/** Runs `sluice rules replay RULES LOG...`: shows what the rules would have refused. */
export async function replay(
  rulesName: string,
  logNames: readonly string[],
  options: ReplayCommandOptions,
  io: Io,
): Promise<CommandOutcome> {
  if (rulesName === "-" && logNames.includes("-"))
    throw new UsageError("both the rules and a log are standard input: give the name of one of them")
  const { against, maxNewlyRefused, never, trustedProxies, clientIpHeader, ipv6Prefix } = options
  if (maxNewlyRefused !== undefined && against === undefined)
    throw new UsageError("--max-newly-refused needs --against: give the rules to compare with")
  const { slightly = 1.5, far = 5 } = options
  if (slightly > far)
    throw new UsageError(`--slightly ${slightly} is more than --far ${far}: give a smaller number`)

  for (const algorithm of options.algorithm ?? []) requireAlgorithm(algorithm)

  const files = [await readRulesFile(rulesName, options, io)]
  if (against !== undefined) files.push(await readRulesFile(against, options, io))
  const wrong = files.find(({ problems }) => problems.length > 0)
  if (wrong !== undefined) return refusal(wrong)
  const [document, before] = files.map((file) => onlyDocument(file, options.service))

  const clients = new ClientTable()
  const neverList = never === undefined ? undefined : NeverList.ofFile(never, ipv6Prefix)
  const replayed = new LogsReplay({
    service: (document as OwnedDocument).service,
    rules: (document as OwnedDocument).rules,
    against: before && { name: files[1]?.name ?? "", rules: before.rules },
    algorithms: options.algorithm,
    address: { trustedProxies, clientIpHeader, ipv6Prefix },
    thresholds: { slightly, far },
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
      replayed.offer(records)
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

async function writeReport(path: string, result: ReplayResult): Promise<void> {
  // Loaded on demand, because the report contains a library for plots.
  const { reportHtml } = await import("../report/report-html.ts")
  try {
    await writeFile(path, reportHtml(result))
  } catch (error) {
    throw new UsageError(`--report: ${path} cannot be written: ${(error as Error).message}`, { cause: error })
  }
}

function outcomeOf(
  result: ReplayResult,
  logs: Logs,
  { skipUnjudged, report }: ReplayCommandOptions,
): CommandOutcome {
  const unjudged = skipUnjudged === true ? [] : result.rules.filter(({ judged }) => !judged)
  const exceeded = result.bounds.filter(({ holds }) => !holds)
  const { unparsed, unparsedExamples, requests } = logs.summary
  return {
    exitCode:
      unjudged.length > 0 || requests === 0 ? EXIT.usage : exceeded.length > 0 ? EXIT.problems : EXIT.ok,
    json: result,
    text: [
      ...resultLines(result, logs.summary),
      ...(report === undefined ? [] : [tinted("quiet", `The report is in ${report}.`)]),
    ],
    warnings:
      unparsed === 0
        ? []
        : [
            tinted("changed", `warning: ${unparsed} lines are not in the format of their file, such as:`),
            ...unparsedExamples.map(({ file, line, text }) => `  ${file}:${line}: ${text}`),
          ],
    errors: [
      ...(requests === 0
        ? [tinted("bad", "error: the logs contain no request: check the files, or give their --format")]
        : []),
      ...unjudged.map(({ name, missing }) =>
        tinted(
          "bad",
          `error: rule ${name} could not be judged, because the log lacks ${missing.join(" and ")}: log it, read it with --map, or give --skip-unjudged`,
        ),
      ),
    ],
  }
}
