import type { Rule } from "@sluice/core"
import { readLines } from "@sluice/logs"
import { ruleName } from "@sluice/rules"
import { openRedis, type PlaceOptions } from "../clients/open-clients.ts"
import { serviceRules } from "../clients/service-rules.ts"
import { counted } from "../counted.ts"
import type { Io } from "../io.ts"
import { formatJson, type OutputLine, tinted } from "../line.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"
import { dateRange } from "../usage/date-range.ts"
import { RecordNumbers } from "../usage/record-numbers.ts"
import { readRecord } from "../usage/usage-record.ts"
import { type ClientUsage, UsageSums } from "../usage/usage-sums.ts"
import { type UsageRow, usageCsv, usageJson, usageTable } from "../usage/usage-text.ts"
import { UsageError } from "../usage-error.ts"

/** Options of `sluice usage`. */
export interface UsageOptions extends Pick<PlaceOptions, "rules" | "redis" | "prefix" | "ipv6Prefix"> {
  readonly service: string
  readonly from?: string
  readonly to?: string
  readonly format?: "table" | "csv" | "json"
}

/** What was found in files of records. */
interface ReadRecords {
  readonly usage: readonly ClientUsage[]
  /** Number of different records of the service. */
  records: number
  duplicates: number
  missing: number
  /** Number of lines that are not a whole record, and the places of the first ones. */
  unreadable: number
  readonly unreadableAt: readonly string[]
}

/**
 * Runs `sluice usage FILE...`: adds up recorded decisions by rule, client and calendar period. Memory grows with these,
 * but not with the records. A record that is read twice counts once, so a file may be given twice, also compressed.
 */
export async function usage(
  files: readonly string[],
  options: UsageOptions,
  io: Io,
): Promise<CommandOutcome> {
  const { service, format = "table" } = options
  const range = dateRange(options.from, options.to)
  requireInputsOnce([...files, options.rules])
  if (options.rules === undefined && options.redis !== undefined)
    throw new UsageError("--redis is only read with --rules: give the rules file of the app, too")
  const rules = options.rules === undefined ? [] : await serviceRules(service, options.rules, io)
  const found = await readRecords(files, service, io)
  const zones = new Map(rules.map((rule) => [ruleName(rule), rule.timeZone]))
  const rows = found.usage
    .map((each): UsageRow => ({ ...each, timeZone: zones.get(each.rule) ?? "UTC" }))
    .filter((row) => range.overlaps(row, row.timeZone))
  const all = await withStore(rows, rules, options, io)
  const { records, duplicates, missing, unreadable } = found
  const json = {
    ...{ ok: true, service, usage: all.map(usageJson) },
    ...{ records, duplicates, missing, unreadable },
  }
  return {
    exitCode: EXIT.ok,
    json,
    text:
      format === "csv"
        ? usageCsv(service, all)
        : format === "json"
          ? `${formatJson(json, 2)}\n`
          : all.length === 0
            ? [noUsage(found, service)]
            : usageTable(all),
    warnings: warningsOf(found),
  }
}

async function readRecords(files: readonly string[], service: string, io: Io): Promise<ReadRecords> {
  const sums = new UsageSums()
  const numbers = new RecordNumbers()
  const unreadableAt: string[] = []
  let [lines, records, others, duplicates, unreadable] = [0, 0, 0, 0, 0]
  for await (const some of readLines(files, io)) {
    for (const { file, line, text, isCut } of some) {
      if (text.trim() === "") continue
      lines++
      const { record, isWhole } = isCut ? CUT : readRecord(text)
      if (!isWhole) {
        unreadable++
        if (unreadableAt.length < MOST_EXAMPLES) unreadableAt.push(`${file}:${line}`)
      }
      if (record === undefined) continue
      if (!numbers.add(record.recorder, record.number)) duplicates++
      else if (record.service !== service) others++
      else {
        records++
        sums.add(record)
      }
    }
  }
  if (lines > 0 && unreadable === lines && records + others === 0)
    throw new UsageError(
      `${unreadableAt[0]} is not a recorded decision, and neither is any other line: give files that jsonLinesSink has written`,
    )
  return { usage: sums.all, records, duplicates, missing: numbers.missing, unreadable, unreadableAt }
}

const CUT = { record: undefined, isWhole: false }
const MOST_EXAMPLES = 3

/** Adds what the store has counted in the current periods, if Redis is configured. */
async function withStore(
  rows: readonly UsageRow[],
  rules: readonly Rule[],
  options: UsageOptions,
  io: Io,
): Promise<readonly UsageRow[]> {
  const nowMs = Date.now()
  const current = rows.filter(({ startMs, endMs }) => startMs <= nowMs && nowMs < endMs)
  if (options.rules === undefined || (options.redis ?? io.env.REDIS_URL ?? "") === "" || current.length === 0)
    return rows
  const redis = await openRedis(options, io)
  try {
    const counts = await redis.usage(options.service, rules, current)
    const byRow = new Map(current.map((row, at) => [row, counts[at]]))
    return rows.map((row) => {
      const count = byRow.get(row)
      // The file may contain another anchor or time zone than the app had.
      if (count === undefined || count.startMs !== row.startMs) return row
      return { ...row, store: { used: count.used, granted: count.granted, left: count.remaining } }
    })
  } finally {
    redis.close()
  }
}

function requireInputsOnce(names: readonly (string | undefined)[]): void {
  if (names.filter((name) => name === "-").length > 1)
    throw new UsageError("standard input is given twice: give the name of a file instead of one of the -")
}

function noUsage({ records, usage }: ReadRecords, service: string): OutputLine {
  if (usage.length > 0) return "no period overlaps the range from --from to --to"
  return records === 0
    ? `the files contain no records of the service ${service}`
    : `the rules of the service ${service} have no calendar periods (per)`
}

function warningsOf({ duplicates, missing, unreadable, unreadableAt }: ReadRecords): readonly OutputLine[] {
  const lines: OutputLine[] = []
  if (duplicates > 0) lines.push(`${counted(duplicates, "record")} read again, and counted once`)
  if (unreadable > 0) {
    const places = `${unreadableAt.join(", ")}${unreadable > unreadableAt.length ? ", ..." : ""}`
    lines.push(tinted("changed", `warning: ${counted(unreadable, "line")} not a whole record: ${places}`))
  }
  if (missing > 0) {
    const text = `${counted(missing, "record")} missing between the others, so the sums may be wrong`
    lines.push(tinted("changed", `warning: ${text}`))
  }
  return lines
}
