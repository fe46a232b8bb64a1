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
/** The most entries of a list and the most rules of a limiter, for which the text may be short enough. */
const BOUNDS = [
  [256, 201],
  [64, 201],
  [16, 201],
  [16, 50],
  [16, 10],
  [0, 0],
] as const

/** Returns snapshots as a text of at most 256 kB. If they are too long, leaves out the ends of lists, and then rules. */
export function textOfSnapshots(snapshots: readonly ActivitySnapshot[]): string {
  for (const [most, mostRules] of BOUNDS) {
    const isWhole = snapshots.every(({ rules }) => rules.length <= mostRules)
    const text = JSON.stringify({
      format: 1,
      isWhole,
      snapshots: snapshots.map((snapshot) => shortened(snapshot, most, mostRules)),
    } satisfies SharedSnapshots)
    if (Buffer.byteLength(text) <= MOST_BYTES) return text
  }
  return JSON.stringify({ format: 1, isWhole: false, snapshots: [] } satisfies SharedSnapshots)
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

function shortened(snapshot: ActivitySnapshot, most: number, mostRules: number): ActivitySnapshot {
  const { rules, refusals } = snapshot
  // Prefer the rules with the clients that are refused most. Otherwise keep the order.
  const kept = rules.length <= mostRules ? rules : [...rules].sort(byRefusals).slice(0, mostRules)
  return {
    ...snapshot,
    refusals: refusals.slice(0, most),
    rules: kept.map((rule) => ({
      ...rule,
      refused: rule.refused.slice(0, most),
      unlistedRefusals: Math.max(rule.unlistedRefusals, rule.refused[most]?.refusals ?? 0),
      busy: rule.busy.slice(0, most),
    })),
  }
}

function byRefusals(one: RuleActivity, other: RuleActivity): number {
  return (other.refused[0]?.refusals ?? 0) - (one.refused[0]?.refusals ?? 0)
}
