import { existsSync, statSync } from "node:fs"
import { dirname } from "node:path"
import { type ClientAddressOptions, InvalidOptionError, type StorableRule } from "@sluice/core"
import { createReplay } from "@sluice/core/replay"
import type { Io } from "../io.ts"
import { type LogOptions, readLogOptionsOf } from "../log-options.ts"
import type { LogSummary } from "../logs/log.ts"
import { readLogs } from "../logs/read-logs.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"
import { counted } from "../quantities.ts"
import { replaceFile } from "../replace-file.ts"
import { hiddenNames } from "../replay/hidden-names.ts"
import { ReadingProgress } from "../replay/progress.ts"
import { isJsonName, readRulesFile } from "../rules-file.ts"
import { ClientDemand, type DemandOptions } from "../suggest/demand.ts"
import { Refusals } from "../suggest/refusals.ts"
import type { RequestGroup } from "../suggest/request-groups.ts"
import { rulesFileText, suggestedRules } from "../suggest/rules-file-text.ts"
import { Suggestion } from "../suggest/suggestion.ts"
import { suggestLines } from "../suggest/text.ts"
import type { Capacity, WindowLength } from "../suggest/window-length.ts"
import type { WindowAlgorithm } from "../suggest/window-peaks.ts"
import { UsageError } from "../usage-error.ts"
import { refusal } from "./check.ts"
import { unparsedLines } from "./unparsed-lines.ts"

/** Options of `sluice rules suggest`. */
export interface SuggestOptions extends LogOptions {
  readonly by: readonly string[]
  readonly windows: readonly WindowLength[]
  readonly algorithm: WindowAlgorithm
  /** A share of clients from 0 to 1. */
  readonly refuseAtMost: number
  readonly maxClients: number
  /** A rules file. Requests that a `match` in it selects get limits of their own. */
  readonly matchFrom?: string
  readonly capacity?: Capacity
  readonly output?: string
  readonly hashKeys?: boolean
}

/**
 * Runs `sluice rules suggest LOGS...`: reads the logs twice, suggests limits, and writes them as rules in shadow mode.
 * Standard input is read only once, so the refused requests are then not known.
 */
export async function suggest(
  logs: readonly string[],
  options: SuggestOptions,
  io: Io,
): Promise<CommandOutcome> {
  const output = options.output === "-" ? undefined : options.output
  if (output !== undefined) rejectExisting(output)
  const file = options.matchFrom === undefined ? undefined : await readRulesFile(options.matchFrom, {}, io)
  if (file !== undefined && file.problems.length > 0) return refusal(file)
  const groups = file === undefined ? [] : groupsOf(file.documents.flatMap(({ rules }) => rules))

  const { by, windows, algorithm, maxClients, capacity } = options
  if (capacity !== undefined) requireCapacity(capacity, algorithm)
  const address = addressOf(options)
  const demandOptions = { by, address, windows, algorithm, groups, maxClients, capacity }
  const demand = startDemand(demandOptions)
  const summary = await readAll(logs, options, io, Number.POSITIVE_INFINITY, (record) => demand.offer(record))
  rejectUncounted(summary, demand, by)

  // Values of headers and cookies may be secrets.
  const isHidden = options.hashKeys === true || by.some((field) => /^(?:header|cookie):/.test(field))
  const suggestion = new Suggestion(demand, { ...options, ...(isHidden && { shownName: hiddenNames() }) })
  // A pipe has no size, and can be read only once.
  const canReadAgain = summary.allBytes !== undefined
  const { clients } = demand
  const refusals = canReadAgain
    ? new Refusals(suggestion.tried, { ...demandOptions, clients, largest: suggestion.largest })
    : undefined
  // A log may have grown in the meantime.
  if (refusals !== undefined) {
    const again = await readAll(logs, options, io, summary.requests, (record) => refusals.offer(record))
    if (again.requests < summary.requests)
      throw new UsageError("the logs have become shorter while they were read: run the command again")
  }

  const result = suggestion.resultOf(summary, refusals)
  const isJson = output !== undefined && isJsonName(output)
  const text = rulesFileText(result, isJson ? "json" : "yaml")
  if (output !== undefined) await replaceFile(output, text)
  const rules = suggestedRules(result)
  return {
    exitCode: EXIT.ok,
    warnings: unparsedLines(summary, options.hashKeys === true),
    json: {
      ok: true,
      ...result,
      ...(output === undefined ? { rules: rules.map(({ rule }) => rule) } : { output }),
    },
    text:
      options.output === "-"
        ? text
        : [
            ...suggestLines(result),
            ...(output === undefined
              ? []
              : [`${output}: ${counted(rules.length, "rule")}, all of them in shadow mode`]),
          ],
  }
}

/** Rejects a capacity that a rule cannot have, before the logs are read. */
function requireCapacity({ limit, window }: Capacity, algorithm: WindowAlgorithm): void {
  try {
    createReplay({ rules: [{ field: "service", limit, window: window.text, algorithm }] })
  } catch (error) {
    const [problem] = error instanceof InvalidOptionError ? error.problems : []
    throw new UsageError(`--capacity: ${problem?.message}; accepted: ${problem?.accepted}`, { cause: error })
  }
}

/** Passes at most `most` requests of the logs to `onRequest`. */
async function readAll(
  paths: readonly string[],
  options: SuggestOptions,
  io: Io,
  most: number,
  onRequest: (record: Parameters<ClientDemand["offer"]>[0]) => void,
): Promise<LogSummary> {
  const logs = readLogs(paths, readLogOptionsOf(options), io)
  const progress = new ReadingProgress(io, logs.summary)
  let requests = 0
  try {
    for await (const records of logs) {
      for (let i = 0; i < records.length && requests < most; i++, requests++) {
        onRequest(records[i] as (typeof records)[number])
      }
      if (requests >= most) break
      progress.update()
    }
  } finally {
    progress.end()
  }
  return logs.summary
}

/** Rejects a file that exists, because rules in shadow mode would replace limits that may be in force. */
function rejectExisting(path: string): void {
  if (!existsSync(dirname(path)))
    throw new UsageError(`--output: the folder ${dirname(path)} does not exist: create it first`)
  if (existsSync(path) && statSync(path).isFile())
    throw new UsageError(`--output: ${path} already exists: give the name of a new file, or remove it first`)
}

/** Returns a group for each `match` of the rules. */
function groupsOf(rules: readonly StorableRule[]) {
  const groups = new Map<string, RequestGroup>()
  for (const { name, match } of rules) {
    const key = JSON.stringify(match)
    // Only rules in code have functions.
    if (typeof match === "object" && !groups.has(key))
      groups.set(key, { name: name ?? match.path ?? "rule", match })
  }
  return [...groups.values()]
}

function addressOf({ trustedProxies, clientIpHeader, ipv6Prefix }: LogOptions): ClientAddressOptions {
  return {
    ...(trustedProxies !== undefined && { trustedProxies }),
    ...(clientIpHeader !== undefined && { clientIpHeader }),
    ...(ipv6Prefix !== undefined && { ipv6Prefix }),
  } as ClientAddressOptions
}

function startDemand(options: DemandOptions): ClientDemand {
  if (options.by.includes("service"))
    throw new UsageError("--by: service is not a field of clients: use --capacity for the whole service")
  try {
    return new ClientDemand(options)
  } catch (error) {
    if (!(error instanceof InvalidOptionError)) throw error
    throw new UsageError(`--by ${options.by.join(",")}, or an option about addresses: ${error.message}`, {
      cause: error,
    })
  }
}

function rejectUncounted(summary: LogSummary, demand: ClientDemand, by: readonly string[]): void {
  if (demand.proxies.isMissing)
    throw new UsageError(
      `proxies are trusted, but the logs lack the header ${demand.proxies.names}: log it, or read it with --map`,
    )
  if (summary.unparsed > summary.requests && summary.requests > 0)
    throw new UsageError(
      `most lines are not in the format of their file: give its --format (${summary.unparsed} unparsed)`,
    )
  if (summary.requests === 0) {
    const lines = counted(summary.lines, "line")
    throw new UsageError(`the logs have no requests: ${lines}, ${summary.unparsed} of them not in the format`)
  }
  if (demand.groups[0]?.requests !== 0) return
  const field = by.find((each) => demand.missing.some((missing) => missing.field === each)) ?? by.join(", ")
  throw new UsageError(`the logs do not have ${field}: log it, or read it with --map`)
}
