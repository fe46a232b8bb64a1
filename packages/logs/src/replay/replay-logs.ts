import { type AlgorithmName, InvalidOptionError } from "@sluice/core"
import type { ClientAddressOptions } from "@sluice/core/adapters"
import { problemAt, requireOptions } from "@sluice/core/kit"
import { createReplay } from "@sluice/core/replay"
import type { StorableRule } from "@sluice/rules"
import { LogError } from "../log-error.ts"
import { openLogs, REPLAY_CHECKS, ruleList } from "../option-checks.ts"
import type { Logs } from "../reading/log.ts"
import { boundOf, type ReplayBounds } from "./bounds.ts"
import { ClientTable } from "./client-table.ts"
import { LogsReplay } from "./logs-replay.ts"
import { NeverList } from "./never-list.ts"
import { resultOf } from "./replay-result.ts"
import type { ReplayResult } from "./result.ts"

/** Options of `replayLogs`. */
export interface ReplayLogsOptions extends ClientAddressOptions {
  /** The rules to replay, in the form of a rules file. */
  readonly rules: readonly StorableRule[]
  /** The service of the rules. Default: "default". */
  readonly service?: string | undefined
  /** Rules to compare with. */
  readonly against?:
    | {
        /** The name of these rules in the result. */
        readonly name: string
        /** The rules. */
        readonly rules: readonly StorableRule[]
      }
    | undefined
  /** Algorithms with which each rule is replayed in addition. */
  readonly algorithms?: readonly AlgorithmName[] | undefined
  /** The maximum of refused requests, as a number or as a percentage such as "0.5%". */
  readonly maxRefused?: number | string | undefined
  /** The maximum of refused clients, as a number or as a percentage such as "0.5%". */
  readonly maxRefusedClients?: number | string | undefined
  /** The maximum of newly refused requests in comparison with `against`, as a number or as a percentage. */
  readonly maxNewlyRefused?: number | string | undefined
  /**
   * A list of clients that must not be refused, and the name of the list in messages. Each line of its text
   * contains an address, a network or a value of a field. A "#" at the start of a line begins a comment.
   */
  readonly never?: Readonly<Record<"name" | "text", string>> | undefined
  /** The highest multiple of the limit at which a client is only slightly over the limit. Default: 1.5. */
  readonly slightly?: number | undefined
  /** The multiple of the limit above which a client is far over the limit. Default: 5. */
  readonly far?: number | undefined
  /** Maximum number of counters in memory. Default: 20 million, enough for 5 million clients under three rules. */
  readonly maxKeys?: number | undefined
  /** Show hashes instead of clients. Default: false. */
  readonly hashKeys?: boolean | undefined
  /** Accept rules that the log cannot judge. Default: false, so each such rule is a problem. */
  readonly skipUnjudged?: boolean | undefined
}

/**
 * This number is more than enough for 5 million clients under three rules. The store allocates memory only for
 * counters in use.
 */
const DEFAULT_MAX_KEYS = 20_000_000

/**
 * Replays logs under rules, and resolves with the refusals that the rules would have caused. Every verdict is the
 * same as the decision of a limiter.
 *
 * Rejects with InvalidOptionError if an option is misspelled or has a value of the wrong type. A rule or an address option
 * that is not valid causes the same error. Rejects with LogError if another option is not valid, or a log cannot be read.
 * @example
 * ```ts
 * import { readLogs, replayLogs } from "@sluice/logs"
 *
 * const rules = [{ name: "per-ip", field: "ip", limit: 60, window: "1 minute" }]
 * export async function refusedIn(paths: readonly string[]): Promise<number> {
 *   const { total } = await replayLogs(readLogs(paths), { rules, maxRefused: "0.5%" })
 *   return total.refused
 * }
 * ```
 */
export async function replayLogs(logs: Logs, options: ReplayLogsOptions): Promise<ReplayResult> {
  requireOptions("replayLogs", options, REPLAY_CHECKS, [
    ...problemAt("logs", logs, openLogs),
    ...problemAt("rules", options?.rules, ruleList),
  ])
  const { rules, service = "default", against, algorithms = [], maxKeys = DEFAULT_MAX_KEYS } = options
  const { trustedProxies, clientIpHeader, ipv6Prefix, slightly = 1.5, far = 5 } = options
  if (slightly > far)
    throw new LogError(`--slightly ${slightly} is more than --far ${far}: give a smaller number`)
  for (const algorithm of algorithms) requireAlgorithm(algorithm)
  const bounds = boundsOf(options)
  const clients = new ClientTable()
  const replay = new LogsReplay({
    ...{ service, rules, against, algorithms, maxKeys, clients, never: bounds.never },
    address: { trustedProxies, clientIpHeader, ipv6Prefix } as ClientAddressOptions,
    thresholds: { slightly, far },
  })
  for await (const records of logs) replay.offer(records, logs.summary.resolutionMs)
  const { hashKeys = false, skipUnjudged = false } = options
  return resultOf(logs.summary, replay, { bounds, clients, hashKeys, skipUnjudged, rules })
}

function boundsOf(options: ReplayLogsOptions): ReplayBounds {
  const { maxRefused, maxRefusedClients, maxNewlyRefused, against, never } = options
  if (maxNewlyRefused !== undefined && against === undefined)
    throw new LogError("--max-newly-refused needs --against: give the rules to compare with")
  return {
    maxRefused: boundOf("--max-refused", maxRefused),
    maxRefusedClients: boundOf("--max-refused-clients", maxRefusedClients),
    maxNewlyRefused: boundOf("--max-newly-refused", maxNewlyRefused),
    never: never && new NeverList(never.name, never.text),
  }
}

function requireAlgorithm(algorithm: AlgorithmName): void {
  try {
    createReplay({ rules: [{ field: "ip", limit: 1, window: "1 minute", algorithm }] })
  } catch (error) {
    const [problem] = error instanceof InvalidOptionError ? error.problems : []
    throw new LogError(`--algorithm: ${problem?.message}; expected ${problem?.accepted}`, { cause: error })
  }
}
