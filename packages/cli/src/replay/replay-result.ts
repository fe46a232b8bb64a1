import { hash } from "node:crypto"
import type { LogSummary } from "../logs/log.ts"
import { checkBounds, type ReplayBounds } from "./bounds.ts"
import type { ClientTable } from "./client-table.ts"
import { isPessimistic, type LogsReplay } from "./logs-replay.ts"
import { notesOn } from "./notes.ts"
import type { ReplayRun } from "./replay-run.ts"
import type { LogResult, RefusedClient, ReplayResult, RuleResult } from "./result.ts"

export interface ResultOptions {
  readonly bounds: ReplayBounds
  readonly clients: ClientTable
  readonly hashKeys: boolean
  /** True if rules that the log cannot judge are accepted. */
  readonly skipUnjudged: boolean
}

const MOST_CLIENTS = 1_000

/** Returns the result of a replay whose logs have been read. */
export function resultOf(logs: LogSummary, replay: LogsReplay, options: ResultOptions): ReplayResult {
  const { main } = replay
  const { clients } = options
  const nameOf = (client: number): string => {
    const name = clients.nameOf(client)
    return options.hashKeys ? hash("sha256", name, "hex").slice(0, 16) : name
  }
  // Without requests, there is no log to be too short.
  const logMs = logs.fromMs === undefined ? Number.POSITIVE_INFINITY : (logs.toMs as number) - logs.fromMs
  const rules = main.rules.map((statistics): RuleResult => {
    const missing = main.replay.notJudged.flatMap(({ rule, field }) =>
      rule === statistics.rule.name ? field : [],
    )
    const result = statistics.result(missing, logMs)
    const isShort = isPessimistic(result.windowMs, logs.resolutionMs)
    const spread = isShort ? replay.spread?.rules.find(({ rule }) => rule.name === result.name) : undefined
    return {
      ...result,
      ...(spread && { spread: { refused: spread.refused, clients: spread.clients.refused.length } }),
    }
  })
  const against = replay.comparison
  const live = replay.live(logs.files)
  const { algorithms } = replay
  const partial = {
    schema: 1,
    log: logOf(logs, main),
    rules,
    total: {
      seen: main.seen,
      refused: main.refused,
      clients: { seen: main.addresses, refused: main.refusedClients },
    },
    clients: refusedClients(main, nameOf),
    timeline: main.timeline.result(main.rules.map(({ rule }) => rule.name)),
    ...(against && {
      against: {
        ...against,
        clients: against.clients.map(({ client, ...each }) => ({ ...each, client: nameOf(client) })),
      },
    }),
    ...(algorithms && { algorithms }),
    ...(live && { live }),
  } as const
  const bounds = checkBounds(options.bounds, partial)
  return {
    ...partial,
    ok: bounds.every(({ holds }) => holds) && (options.skipUnjudged || rules.every(({ judged }) => judged)),
    bounds,
    notes: notesOn(partial, { logs, evictions: main.replay.evictions, rules: main.replay.rules }),
  }
}

function logOf(logs: LogSummary, main: ReplayRun): LogResult {
  const { lines, requests, unparsed, skipped, reordered, late, tooManyRequests, resolutionMs } = logs
  return {
    files: logs.files.map(({ name, format, lines }) => ({ name, format: format ?? "unknown", lines })),
    ...{ lines, requests, unparsed, skipped, reordered, late, tooManyRequests },
    clients: main.addresses,
    from: logs.fromMs ?? null,
    to: logs.toMs ?? null,
    resolutionMs,
  }
}

function refusedClients(main: ReplayRun, nameOf: (client: number) => string): readonly RefusedClient[] {
  return main.rules
    .flatMap(({ rule, clients }) => clients.refused.map((each) => ({ ...each, rule })))
    .sort((one, other) => other.refused - one.refused)
    .slice(0, MOST_CLIENTS)
    .map(({ rule, client, ...counts }) => ({
      ...{ client: nameOf(client), rule: rule.name, shadow: rule.shadow },
      ...counts,
    }))
}
