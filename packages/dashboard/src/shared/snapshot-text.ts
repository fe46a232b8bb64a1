import type { ActivitySnapshot, RuleActivity } from "../recorder/snapshot.ts"
import { isSnapshot } from "./snapshot-shape.ts"

/** What a process has recorded, as on a board. */
export interface SharedSnapshots {
  /** The number of this form. A later form that this code cannot read has another number. */
  readonly format: 1
  /** False if rules were left out, because the text would be too long. */
  readonly isWhole: boolean
  readonly snapshots: readonly ActivitySnapshot[]
}

/** Longest text in bytes. */
const MOST_BYTES = 262_144
/** The most entries of a list. A text has as many as possible. */
const LENGTHS = [16, 64, 256] as const
/** The byte between two elements of an array. */
const COMMA = 1

/**
 * Returns snapshots as a text of at most 256 kB. If they are too long, leaves out the ends of lists, then rules with few
 * refusals, and then the last snapshots. Reads only as many snapshots as fit.
 */
export function textOfSnapshots(snapshots: Iterable<ActivitySnapshot>): string {
  const kept: ActivitySnapshot[] = []
  const sharedOf = (most: number, isWhole: boolean): SharedSnapshots => ({
    ...{ format: 1, isWhole },
    snapshots: kept.map((snapshot) => shortened(snapshot, most)),
  })
  let isWhole = true
  let left = MOST_BYTES - bytesOf(sharedOf(0, false))
  for (const snapshot of snapshots) {
    left -= bytesOf(shortened({ ...snapshot, rules: [] }, LENGTHS[0])) + COMMA
    const rules: RuleActivity[] = []
    for (const rule of [...snapshot.rules].sort(byMostRefused)) {
      left -= bytesOf(shortenedRule(rule, LENGTHS[0])) + COMMA
      if (left >= 0) rules.push(rule)
      else break
    }
    isWhole = left >= 0
    if (rules.length > 0 || isWhole) kept.push(isWhole ? snapshot : { ...snapshot, rules })
    if (!isWhole) break
  }
  let text = JSON.stringify(sharedOf(LENGTHS[0], isWhole))
  for (const most of LENGTHS.slice(1)) {
    const longer = JSON.stringify(sharedOf(most, isWhole))
    if (Buffer.byteLength(longer) > MOST_BYTES) break
    text = longer
  }
  return text
}

/** Reads the text of another process. Returns undefined if it is not such a text, or of another version. */
export function snapshotsIn(text: string): SharedSnapshots | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isSharedSnapshots(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isSharedSnapshots(value: unknown): value is SharedSnapshots {
  const { format, isWhole, snapshots } = (value ?? {}) as Partial<SharedSnapshots>
  return (
    format === 1 && typeof isWhole === "boolean" && Array.isArray(snapshots) && snapshots.every(isSnapshot)
  )
}

function shortened(snapshot: ActivitySnapshot, most: number): ActivitySnapshot {
  return {
    ...snapshot,
    refusals: snapshot.refusals.slice(0, most),
    rules: snapshot.rules.map((rule) => shortenedRule(rule, most)),
  }
}

function shortenedRule(rule: RuleActivity, most: number): RuleActivity {
  return {
    ...rule,
    refused: rule.refused.slice(0, most),
    unlistedRefusals: Math.max(rule.unlistedRefusals, rule.refused[most]?.refusals ?? 0),
    busy: rule.busy.slice(0, most),
  }
}

function byMostRefused(one: RuleActivity, other: RuleActivity): number {
  return (other.refused[0]?.refusals ?? 0) - (one.refused[0]?.refusals ?? 0)
}

function bytesOf(value: object): number {
  return Buffer.byteLength(JSON.stringify(value))
}
