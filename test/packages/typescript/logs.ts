import {
  type LogRecord,
  type Logs,
  type ReplayLogsOptions,
  type ReplayResult,
  readLogs,
  replayLines,
  replayLogs,
  replayReport,
  type SuggestResult,
  suggestedRules,
  suggestLimits,
  type TextLine,
} from "@sluice/logs"

const options: ReplayLogsOptions = {
  rules: [{ name: "per-ip", field: "ip", limit: 60, window: "1 minute" }],
  algorithms: ["token-bucket"],
  maxRefused: "0.5%",
}
const open = (): Logs => readLogs(["access.log"], { format: "combined", withoutStatus: [429] })

export async function addressesIn(logs: Logs): Promise<ReadonlySet<string | undefined>> {
  const found = new Set<string | undefined>()
  for await (const records of logs)
    for (const { remoteAddress } of records satisfies readonly LogRecord[]) found.add(remoteAddress)
  return found
}

export async function report(): Promise<readonly [html: string, lines: readonly TextLine[]]> {
  const logs = open()
  const result: ReplayResult = await replayLogs(logs, options)
  return [replayReport(result), replayLines(result, logs.summary)]
}

export async function limits(): Promise<readonly unknown[]> {
  const result: SuggestResult = await suggestLimits(open, { by: ["ip"], windows: ["1m"], capacity: "500/s" })
  return suggestedRules(result).map(({ limit }) => limit)
}

// @ts-expect-error a log is given in an array, also if it is the only one
readLogs("access.log")
// @ts-expect-error peaks in a bucket depend on its limit
suggestLimits(open, { algorithm: "token-bucket" })
// @ts-expect-error the option is `rules`, not `rule`
replayLogs(open(), { rule: [] })
