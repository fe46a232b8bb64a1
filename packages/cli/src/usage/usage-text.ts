import { clientText } from "../client-text.ts"
import { columns, type OutputLine, printable, tinted } from "../line.ts"
import { boundaryText } from "./date-range.ts"
import type { ClientUsage } from "./usage-sums.ts"

/** A client's usage in a period. */
export interface UsageRow extends ClientUsage {
  /** The time zone of the rule; "UTC" if it is not known. */
  readonly timeZone: string
  /** What the store has counted in the current period. Absent if the store was not read. */
  readonly store?: { readonly used: number; readonly granted: number; readonly left: number }
}

/** A column of the table. Its number is undefined if it is not known. */
interface NumberColumn {
  readonly name: string
  readonly of: (row: UsageRow) => number | undefined
  /** True if the column is left out unless one of its numbers is known and not 0. */
  readonly isOptional?: true
}

const NUMBERS: readonly NumberColumn[] = [
  { name: "limit", of: ({ limit }) => limit },
  { name: "granted", of: ({ granted }) => granted },
  { name: "used", of: ({ used }) => used },
  { name: "left", of: ({ left }) => left },
  { name: "without store", of: ({ withoutStore }) => withoutStore, isOptional: true },
  { name: "used in store", of: ({ store }) => store?.used, isOptional: true },
  { name: "granted in store", of: ({ store }) => store?.granted, isOptional: true },
]

/** Returns a table for people. */
export function usageTable(rows: readonly UsageRow[]): readonly OutputLine[] {
  const numbers = NUMBERS.filter(
    ({ of, isOptional }) => !isOptional || rows.some((row) => (of(row) ?? 0) !== 0),
  )
  const table = rows.map((row) => [
    ...[printable(row.rule), printable(clientText(row.client))],
    ...[boundaryText(row.startMs, row.timeZone), boundaryText(row.endMs, row.timeZone)],
    ...numbers.map(({ of }) => `${of(row) ?? ""}`),
  ])
  const units = [...new Set(rows.map(({ unit }) => unit))]
  if (units.length > 1) for (const [at, row] of rows.entries()) table[at]?.splice(4, 0, printable(row.unit))
  const head = [
    "rule",
    "client",
    "from",
    "to",
    ...(units.length > 1 ? ["unit"] : []),
    ...numbers.map(({ name }) => name),
  ]
  const [first = "", ...lines] = columns([head, ...table], numbers.length)
  return [tinted("quiet", first), ...lines]
}

/** Returns the rows as JSON values, with instants in UTC. */
export function usageJson({ startMs, endMs, timeZone: _, ...row }: UsageRow): object {
  const { rule, client, unit, ...counts } = row
  return { rule, client, unit, from: instant(startMs), to: instant(endMs), ...counts }
}

const CSV_HEAD =
  "service,rule,client,unit,from,to,limit,granted,used,left,without_store,store_used,store_granted,store_left"

/** Returns the rows as CSV (RFC 4180), with instants in UTC. */
export function usageCsv(service: string, rows: readonly UsageRow[]): string {
  const lines = rows.map(({ rule, client, unit, startMs, endMs, store, ...row }) => [
    ...[service, rule, client, unit].map(csvText),
    ...[instant(startMs), instant(endMs)],
    ...[row.limit, row.granted, row.used, row.left, row.withoutStore],
    ...[store?.used, store?.granted, store?.left],
  ])
  return [CSV_HEAD, ...lines.map((cells) => cells.map((cell) => cell ?? "").join(","))]
    .map((line) => `${line}\r\n`)
    .join("")
}

/**
 * Returns a string as a cell. A spreadsheet would execute a string such as "=1+1" as a formula, and a client may choose its
 * name, so an apostrophe precedes it. An apostrophe also precedes another one, so that two clients never look the same.
 */
function csvText(text: string): string {
  const safe = printable(text).replace(/^['=+\-@\uff1d\uff0b\uff0d\uff20]/, "'$&")
  return /[",;\s]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

function instant(ms: number): string {
  return new Date(ms).toISOString().replace(".000Z", "Z")
}
