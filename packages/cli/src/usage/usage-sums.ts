import type { UsageCheck, UsageRecord } from "./usage-record.ts"

/** What a client has used of a rule in one calendar period. */
export interface ClientUsage {
  readonly rule: string
  readonly client: string
  readonly unit: string
  readonly startMs: number
  readonly endMs: number
  /** The latest limit, including `granted`. Absent if no decision of the client was made in the store. */
  readonly limit?: number
  readonly granted: number
  readonly used: number
  /** The remaining units. Absent if the limit is. */
  readonly left?: number
  /** How many of the used units were taken without the shared store. */
  readonly withoutStore: number
}

/** The sum of a client's records in one period. */
interface Sum {
  readonly rule: string
  readonly client: string
  readonly startMs: number
  unit: string
  endMs: number
  used: number
  withoutStore: number
  /** The recorded grants. Absent if there are none. */
  grants?: (readonly [timeMs: number, added: number])[]
  /** The time of the latest record. */
  lastMs: number
  /** The time of the latest decision in the store, its limit without granted units, and the units granted then. */
  decidedMs: number
  limit: number
  granted: number
}

/** Adds up the records of a service by rule, client and period. Memory grows with these and with the grants. */
export class UsageSums {
  readonly #sums = new Map<string, Sum>()

  add({ timeMs, degraded, checks }: UsageRecord): void {
    for (const check of checks) {
      const { startMs, endMs } = check
      if (startMs === undefined || endMs === undefined) continue
      const sum = this.#sumOf(check, startMs)
      sum.used += check.taken
      if (degraded) sum.withoutStore += check.taken
      else if (check.limit !== undefined) keepLimit(sum, check.limit, check.granted ?? 0, timeMs)
      if (check.unit !== undefined) sum.unit = check.unit
      if (check.added !== undefined) {
        sum.grants ??= []
        sum.grants.push([timeMs, check.added])
      }
      // The end changes if the anchor or the rules of the time zone change.
      if (timeMs >= sum.lastMs) sum.endMs = endMs
      sum.lastMs = Math.max(sum.lastMs, timeMs)
    }
  }

  /** Returns the usage in the order of rules, clients and periods. */
  get all(): readonly ClientUsage[] {
    return merged([...this.#sums.values()].sort(inOrder)).map(usageOf)
  }

  #sumOf({ policy: rule, partition: client }: UsageCheck, startMs: number): Sum {
    const key = JSON.stringify([rule, client, startMs])
    let sum = this.#sums.get(key)
    if (sum === undefined) {
      sum = {
        ...{ rule, client, startMs, unit: "requests", endMs: startMs, used: 0, withoutStore: 0 },
        ...UNDECIDED,
      }
      this.#sums.set(key, sum)
    }
    return sum
  }
}

const UNDECIDED = { lastMs: -1, decidedMs: -1, limit: 0, granted: 0 }

function keepLimit(sum: Sum, limit: number, granted: number, timeMs: number): void {
  // Of two decisions in the same millisecond, the larger limit wins, so that the order of the files does not matter.
  if (timeMs < sum.decidedMs || (timeMs === sum.decidedMs && limit < sum.limit + sum.granted)) return
  sum.decidedMs = timeMs
  sum.limit = limit - granted
  sum.granted = granted
}

/**
 * Adds each sum to one that was recorded later, and whose period contains the beginning of its own. This happens after a
 * client's anchor has changed, because the store then counts on in that period.
 */
function merged(sums: readonly Sum[]): readonly Sum[] {
  const all: Sum[] = []
  for (const sum of sums) {
    const later = laterOf(all, sum)
    if (later === undefined) all.push(sum)
    else {
      later.used += sum.used
      later.withoutStore += sum.withoutStore
      if (sum.grants !== undefined) later.grants = [...(later.grants ?? []), ...sum.grants]
    }
  }
  return all
}

/** Returns the sum of the same client that goes on with a sum. The sums are in order. */
function laterOf(sums: readonly Sum[], { rule, client, startMs, lastMs }: Sum): Sum | undefined {
  for (let at = sums.length - 1; at >= 0; at--) {
    const each = sums[at] as Sum
    if (each.rule !== rule || each.client !== client) return undefined
    if (startMs < each.endMs && each.lastMs >= lastMs) return each
  }
  return undefined
}

function usageOf({ rule, client, unit, startMs, endMs, used, withoutStore, ...sum }: Sum): ClientUsage {
  const granted = Math.max(sum.granted, totalOf(sum.grants ?? []))
  const limit = sum.limit + granted
  return {
    ...{ rule, client, unit, startMs, endMs },
    ...(sum.decidedMs >= 0 && { limit }),
    ...{ granted, used },
    ...(sum.decidedMs >= 0 && { left: Math.max(0, limit - used) }),
    withoutStore,
  }
}

/** Returns the units that are granted after all grants. Units that were not granted cannot be taken back. */
function totalOf(grants: readonly (readonly [timeMs: number, added: number])[]): number {
  return [...grants]
    .sort(([one], [other]) => one - other)
    .reduce((total, [, added]) => Math.max(0, total + added), 0)
}

function inOrder(one: Sum, other: Sum): number {
  return compare(one.rule, other.rule) || compare(one.client, other.client) || one.startMs - other.startMs
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}
