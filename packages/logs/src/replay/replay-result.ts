import { releases } from "@sluice/core/stores"
import type { StorableRule } from "@sluice/rules"
import type { LogSummary } from "../reading/log.ts"
import { checkBounds, type ReplayBounds } from "./bounds.ts"
import type { ClientTable } from "./client-table.ts"
import { hiddenNames } from "./hidden-names.ts"
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
  /** The rules as written, in the order of the replayed rules. */
  readonly rules: readonly StorableRule[]
}

const MOST_CLIENTS = 1_000

/** Returns the result of a replay whose logs have been read. */
export function resultOf(logs: LogSummary, replay: LogsReplay, options: ResultOptions): ReplayResult {
  const { main, algorithms, comparison } = replay
  const hide = options.hashKeys ? hiddenNames() : (name: string) => name
  const nameOf = (client: number): string => hide(options.clients.nameOf(client))
  // If there are no requests, no window is too long for the log.
  const logMs = logs.fromMs === undefined ? Number.POSITIVE_INFINITY : (logs.toMs as number) - logs.fromMs
  const rules = main.rules.map((statistics, at): RuleResult => {
    const { hold = "30 seconds", per, window = per ?? hold } = options.rules[at] as StorableRule
    const { name } = statistics.rule
    const written = typeof window === "number" ? `${window} ms` : String(window)
    const result = statistics.result(main.missingOf(name), written, logMs)
    const isShort = result.judged && isPessimistic(result.windowMs, logs.resolutionMs)
    const spread = isShort ? replay.spread?.rules[at] : undefined
    return {
      ...result,
      ...(spread && { spread: { refused: spread.refused, clients: spread.refusedClients } }),
    }
  })
  const live = replay.live.result(logs.files)
  const total = {
    seen: main.seen,
    refused: main.refused,
    clients: { seen: main.clientsSeen, refused: main.refusedClients },
  }
  const against = comparison && {
    ...comparison,
    clients: comparison.clients.map((each) => ({ ...each, client: nameOf(each.client) })),
  }
  const problems = problemsOf(logs, replay, rules, options)
  const bounds = checkBounds(options.bounds, { total, ...(against && { against }) }, hide)
  return {
    schema: 1,
    ok: problems.length === 0 && bounds.every(({ holds }) => holds),
    problems,
    log: logOf(logs, main),
    rules,
    total,
    clients: refusedClients(main, nameOf),
    timeline: main.timeline.result(main.rules.map(({ rule }) => rule.name)),
    ...(against && { against }),
    ...(algorithms && { algorithms }),
    ...(live && { live }),
    bounds,
    notes: notesOn(rules, live, logs, replay),
  }
}

/** Returns the reasons why the result is not reliable. */
function problemsOf(
  logs: LogSummary,
  replay: LogsReplay,
  rules: readonly RuleResult[],
  { skipUnjudged }: ResultOptions,
): readonly string[] {
  const { evictions, forwarded, compared, main } = replay
  if (logs.requests === 0) return ["the logs contain no request: check the files, or give their --format"]
  const unjudged = rules.flatMap(({ name, missing, algorithm }) =>
    missing.length === 0 || releases({ algorithm })
      ? []
      : `rule ${name} could not be judged, because the log lacks ${missing.join(" and ")}`,
  )
  const before = (compared?.run.rules ?? []).flatMap(({ rule }) => {
    const { name } = rule
    const missing = compared?.run.missingOf(name) ?? []
    return missing.length === 0 || releases(rule)
      ? []
      : `rule ${name} of ${compared?.name} could not be judged, because the log lacks ${missing.join(" and ")}`
  })
  const proxies = forwarded.isMissing
    ? [
        `proxies are trusted, but the log lacks the header ${forwarded.names}, so clients behind a proxy count as one`,
      ]
    : []
  const addresses =
    main.withoutAddress === main.seen && main.countsAddresses
      ? ["no request has an address, so rules by address count all clients as one"]
      : []
  return [
    ...(logs.unparsed > logs.requests
      ? [`most lines are not in the format of their file: give its --format (${logs.unparsed} unparsed)`]
      : []),
    ...(evictions > 0
      ? [
          `the result is wrong, because ${evictions} counters had no room: raise --max-keys, or replay a part of the logs`,
        ]
      : []),
    ...(skipUnjudged
      ? []
      : [...unjudged, ...before, ...proxies, ...addresses].map(
          (each) => `${each}: log it, read it with --map, or give --skip-unjudged`,
        )),
  ]
}

function logOf(logs: LogSummary, main: ReplayRun): LogResult {
  const { lines, requests, unparsed, skipped, reordered, late, tooManyRequests, resolutionMs } = logs
  return {
    files: logs.files.map(({ name, format, lines }) => ({ name, format: format ?? "unknown", lines })),
    ...{ lines, requests, unparsed, skipped, reordered, late, tooManyRequests },
    clients: main.clientsSeen,
    from: logs.fromMs ?? null,
    to: logs.toMs ?? null,
    resolutionMs,
  }
}

function refusedClients(main: ReplayRun, nameOf: (client: number) => string): readonly RefusedClient[] {
  return main.rules
    .flatMap(({ rule, clients }) => clients.mostRefused(MOST_CLIENTS).map((each) => ({ ...each, rule })))
    .sort((one, other) => other.refused - one.refused)
    .slice(0, MOST_CLIENTS)
    .map(({ rule, client, ...counts }) => ({
      ...{ client: nameOf(client), rule: rule.name, shadow: rule.shadow },
      ...counts,
    }))
}
