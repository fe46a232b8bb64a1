import { InvalidOptionError } from "@sluice/core"
import type { ClientAddressOptions } from "@sluice/core/adapters"
import { problemAt, requireOptions } from "@sluice/core/kit"
import { type StorableRule, staticRules } from "@sluice/rules"
import { LogError } from "../log-error.ts"
import { opener, openLogs, SUGGEST_CHECKS } from "../option-checks.ts"
import { counted } from "../quantities.ts"
import type { LogRecord, LogSummary, Logs } from "../reading/log.ts"
import { hiddenNames } from "../replay/hidden-names.ts"
import { ClientDemand, type DemandOptions } from "./demand.ts"
import { Refusals } from "./refusals.ts"
import type { RequestGroup } from "./request-groups.ts"
import type { SuggestResult } from "./result.ts"
import { Suggestion } from "./suggestion.ts"
import { capacityOf, windowsOf } from "./window-length.ts"
import { requireWindowAlgorithm, type WindowAlgorithm } from "./window-peaks.ts"

/** Options of `suggestLimits`. */
export interface SuggestOptions extends ClientAddressOptions {
  /** The fields by which clients are counted. Default: `["ip"]`. */
  readonly by?: readonly string[] | undefined
  /**
   * The windows, each a number and s, m, h or d, up to 7d, or the calendar period "day", "week", "month" or "year".
   * Default: `["1s", "1m", "1h"]`.
   */
  readonly windows?: readonly string[] | undefined
  /** The time zone of the calendar periods. Default: "UTC". */
  readonly timeZone?: string | undefined
  /** The algorithm of the suggested rules. Default: "sliding-window". */
  readonly algorithm?: WindowAlgorithm | undefined
  /** The share of clients that the tight candidate may refuse, from 0 to 1. Default: 0.001. */
  readonly refuseAtMost?: number | undefined
  /**
   * The maximum number of clients to count, from 1,000 to 10 million. If there are more clients, a sample of them is
   * counted. Default: 2 million.
   */
  readonly maxClients?: number | undefined
  /** Requests that a `match` of these rules selects get separate limits. */
  readonly matchFrom?: readonly StorableRule[] | undefined
  /** The capacity of the whole service, such as "500/s". If given, the result contains a rule with this limit. */
  readonly capacity?: string | undefined
  /**
   * Show hashes instead of clients. Default: false. Values of headers and cookies are always hashed, because they may be
   * secret.
   */
  readonly hashKeys?: boolean | undefined
}

/**
 * Suggests limits from logs. Calls `open` twice, because a second pass counts the refused requests. Standard input
 * can be read only once, so its refused requests are unknown.
 *
 * Rejects with InvalidOptionError if an option is misspelled or has a value of the wrong type. Rejects with
 * InvalidRuleError if a rule of `matchFrom` is not valid. Rejects with LogError if another option is not valid, a log
 * cannot be read, or the logs contain no requests.
 * @example
 * ```ts
 * import { readLogs, suggestedRulesFile, suggestLimits } from "@sluice/logs"
 *
 * export async function rulesFor(paths: readonly string[]): Promise<string> {
 *   return suggestedRulesFile(await suggestLimits(() => readLogs(paths), { windows: ["1m", "1h"] }))
 * }
 * ```
 */
export async function suggestLimits(open: () => Logs, options: SuggestOptions = {}): Promise<SuggestResult> {
  requireOptions("suggestLimits", options, SUGGEST_CHECKS, problemAt("open", open, opener))
  const { by = ["ip"], algorithm = "sliding-window", refuseAtMost = 0.001, maxClients = 2_000_000 } = options
  const { trustedProxies, clientIpHeader, ipv6Prefix, matchFrom = [], hashKeys } = options
  requireWindowAlgorithm(algorithm)
  const windows = windowsOf(options.windows ?? ["1s", "1m", "1h"], options.timeZone ?? "UTC")
  const capacity = options.capacity === undefined ? undefined : capacityOf(options.capacity, algorithm)
  const address = { trustedProxies, clientIpHeader, ipv6Prefix } as ClientAddressOptions
  const groups = groupsOf(matchFrom)
  const demandOptions = { by, address, windows, algorithm, groups, maxClients, capacity }
  const demand = startDemand(demandOptions)
  const summary = await readAll(open(), Number.POSITIVE_INFINITY, (record) => demand.offer(record))
  rejectUncounted(summary, demand, by)

  // Values of headers and cookies may be secrets.
  const isHidden = hashKeys === true || by.some((field) => /^(?:header|cookie):/.test(field))
  const suggestion = new Suggestion(demand, {
    ...{ by, windows, algorithm, refuseAtMost, capacity },
    ...(isHidden && { shownName: hiddenNames() }),
  })
  // A pipe has no size, and can be read only once.
  if (summary.allBytes === undefined) return suggestion.resultOf(summary, undefined)
  const { clients } = demand
  const refusals = new Refusals(suggestion.tried, { ...demandOptions, clients, largest: suggestion.largest })
  // Read no further than in the first pass, because a log may have grown since then.
  const again = await readAll(open(), summary.requests, (record) => refusals.offer(record))
  if (again.requests < summary.requests)
    throw new LogError("the logs have become shorter while they were read: run the command again")
  return suggestion.resultOf(summary, refusals)
}

/** Calls `onRequest` with the requests of the logs, at most `most` times. */
async function readAll(
  logs: Logs,
  most: number,
  onRequest: (record: LogRecord) => void,
): Promise<LogSummary> {
  requireOptions("open", {}, {}, problemAt("open()", logs, openLogs))
  let requests = 0
  for await (const records of logs) {
    for (let i = 0; i < records.length && requests < most; i++, requests++) onRequest(records[i] as LogRecord)
    if (requests >= most) break
  }
  return logs.summary
}

/** Returns a group for each `match` of the rules. Throws InvalidRuleError if a rule is invalid. */
function groupsOf(rules: readonly StorableRule[]): RequestGroup[] {
  // Number the groups, because rules of several services may have the same name. Accept a rule without a field, which
  // counts all requests.
  const numbered = Array.from(rules, (rule, at) => {
    return { field: "service", ...rule, ...(typeof rule?.name === "string" && { name: `${at}` }) }
  })
  staticRules(numbered)
  const groups = new Map<string, RequestGroup>()
  for (const { name, match } of rules) {
    const key = JSON.stringify(match)
    // Only rules in code contain functions.
    if (typeof match === "object" && !groups.has(key))
      groups.set(key, { name: name ?? match.path ?? "rule", match })
  }
  return [...groups.values()]
}

function startDemand(options: DemandOptions): ClientDemand {
  if (options.by.includes("service"))
    throw new LogError("--by: service is not a field of clients: use --capacity for the whole service")
  try {
    return new ClientDemand(options)
  } catch (error) {
    if (!(error instanceof InvalidOptionError)) throw error
    throw new LogError(`--by ${options.by.join(",")}, or an option about addresses: ${error.message}`, {
      cause: error,
    })
  }
}

function rejectUncounted(summary: LogSummary, demand: ClientDemand, by: readonly string[]): void {
  if (demand.proxies.isMissing)
    throw new LogError(
      `proxies are trusted, but the logs lack the header ${demand.proxies.names}: log it, or read it with --map`,
    )
  if (summary.unparsed > summary.requests && summary.requests > 0)
    throw new LogError(
      `most lines are not in the format of their file: give its --format (${summary.unparsed} unparsed)`,
    )
  if (summary.requests === 0) {
    const lines = counted(summary.lines, "line")
    throw new LogError(`the logs have no requests: ${lines}, ${summary.unparsed} of them not in the format`)
  }
  if (demand.groups[0]?.requests !== 0) return
  const field = by.find((each) => demand.missing.some((missing) => missing.field === each)) ?? by.join(", ")
  throw new LogError(`the logs do not have ${field}: log it, or read it with --map`)
}
