/** What a record says about a client under one rule. */
export interface UsageCheck {
  readonly policy: string
  readonly partition: string
  readonly unit?: string
  readonly taken: number
  /** Only in a record of a grant. */
  readonly added?: number
  /** Only in a decision. Includes `granted`. */
  readonly limit?: number
  readonly granted?: number
  readonly startMs?: number
  readonly endMs?: number
}

/** The members of a record of `recordDecisions` that are read. */
export interface UsageRecord {
  /** The part of the record's id that names its recorder. */
  readonly recorder: string
  /** The number of the record among those of its recorder. */
  readonly number: number
  readonly timeMs: number
  readonly service: string
  readonly degraded: boolean
  readonly checks: readonly UsageCheck[]
}

/** The beginning of each record. It cannot be part of a string in JSON, where quotes are escaped. */
const BEGINNING = '{"id":"'

/**
 * Returns the record that a line contains, and whether the line contains nothing else. After a crash, a torn record and
 * the first record of the next process share a line.
 */
export function readRecord(line: string): {
  readonly record: UsageRecord | undefined
  readonly isWhole: boolean
} {
  const record = parseRecord(line)
  if (record !== undefined) return { record, isWhole: true }
  const at = line.lastIndexOf(BEGINNING)
  return { record: at > 0 ? parseRecord(line.slice(at)) : undefined, isWhole: false }
}

function parseRecord(text: string): UsageRecord | undefined {
  let value: Partial<UsageRecord> & { readonly id?: unknown }
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  const { id, timeMs, service, degraded, checks } = value ?? {}
  const [, recorder, number] = typeof id === "string" ? (/^(.+)-(\d{1,15})$/.exec(id) ?? []) : []
  if (recorder === undefined || typeof service !== "string" || typeof degraded !== "boolean") return undefined
  if (!Number.isSafeInteger(timeMs) || !Array.isArray(checks) || !checks.every(isCheck)) return undefined
  return { recorder, number: Number(number), timeMs: timeMs as number, service, degraded, checks }
}

function isCheck(value: unknown): value is UsageCheck {
  const { policy, partition, taken, unit = "", ...rest } = (value ?? {}) as Partial<UsageCheck>
  const { added = 0, limit = 0, granted = 0, startMs = 0, endMs = startMs + 1 } = rest
  return (
    [policy, partition, unit].every((each) => typeof each === "string") &&
    [taken, added, limit, granted, startMs, endMs].every(Number.isSafeInteger) &&
    startMs < endMs
  )
}
