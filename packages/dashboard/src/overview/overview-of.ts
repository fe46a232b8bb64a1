import type { Pausable } from "@sluice/core/rules"
import { DistinctKeys, SHARED_SEED } from "../recorder/distinct.ts"
import { laterRefusal, limitedClient, MOST_REFUSED, refusedKey } from "../recorder/refused-clients.ts"
import { MOST_BUSY } from "../recorder/rule-recorder.ts"
import {
  type ActivitySnapshot,
  type BusyClient,
  type DecisionOutcome,
  OUTCOMES,
  type OutcomeCounts,
  type RuleActivity,
  SECONDS,
  SLOT_MS,
  SLOTS,
} from "../recorder/snapshot.ts"
import { mergeTop } from "../recorder/top-keys.ts"
import type { ActivityOverview, RuleOverview, ServiceOverview } from "./overview.ts"

const MOST_REFUSALS = 200

/** Merges what several limiters and processes have recorded. `nowMs` is the time of the overview. */
export function overviewOf(snapshots: readonly ActivitySnapshot[], nowMs: number): ActivityOverview {
  const services = Array.from(groupBy(snapshots, byService), ([service, own]) =>
    serviceOf(service, own, nowMs),
  )
  return { atMs: nowMs, services: services.sort(byName) }
}

/** Most rules in an overview, because somebody has to look at them, and every viewer of the page receives them. */
const MOST_RULES = 250

/** Most refusals of the first services together. Each of the other services has at most 5. */
const MOST_REFUSALS_OF_ALL = 1_000
const FEW_REFUSALS = 5

/**
 * Returns the overview of the first services, as far as they have at most 250 rules. `snapshotsOf` returns snapshots with
 * `refusals` refusals. The work takes 0.1 s for 250 rules, so it can pause after each service.
 */
export function* boundedOverview(
  names: readonly string[],
  snapshotsOf: (service: string, refusals: number) => readonly ActivitySnapshot[],
  nowMs: number,
  missing: string | undefined,
): Pausable<ActivityOverview> {
  const services: ServiceOverview[] = []
  let rules = 0
  let refusalsLeft = MOST_REFUSALS_OF_ALL
  for (const name of names) {
    const most = Math.min(MOST_REFUSALS, Math.max(FEW_REFUSALS, refusalsLeft))
    const snapshots = snapshotsOf(name, most)
    if (snapshots.length === 0) continue
    const service = serviceOf(name, snapshots, nowMs, most)
    rules += service.rules.length
    if (rules > MOST_RULES) break
    services.push(service)
    refusalsLeft -= service.refusals.length
    yield
  }
  const left = names.length - services.length
  const lacks = [
    missing,
    rules > MOST_RULES ? `The ${left} services that refuse least are left out.` : undefined,
  ]
  const all = lacks.filter((each) => each !== undefined).join(" ")
  return { atMs: nowMs, services: services.sort(byName), ...(all !== "" && { missing: all }) }
}

function byService({ service }: ActivitySnapshot): string {
  return service
}

function byName(one: ServiceOverview, other: ServiceOverview): number {
  return one.service < other.service ? -1 : 1
}

/** Returns the values by their keys, in the order of the first value of each key. */
export function groupBy<Value>(
  values: Iterable<Value>,
  keyOf: (value: Value) => string,
): Map<string, Value[]> {
  const groups = new Map<string, Value[]>()
  for (const value of values) {
    const group = groups.get(keyOf(value))
    if (group === undefined) groups.set(keyOf(value), [value])
    else group.push(value)
  }
  return groups
}

function serviceOf(
  service: string,
  snapshots: readonly ActivitySnapshot[],
  nowMs: number,
  mostRefusals = MOST_REFUSALS,
): ServiceOverview {
  const parts = snapshots.flatMap(({ rules, atMs }) => rules.map((each): Part => ({ ...each, atMs })))
  return {
    service,
    instances: snapshots.map(({ instance, sinceMs, atMs, status, rulesStatus }) => ({
      ...{ instance, sinceMs, atMs, status, rulesStatus },
    })),
    rules: [...groupBy(parts, ({ rule }) => rule)].map(([rule, own]) => ruleOf(rule, own, nowMs)),
    refusals: snapshots
      .flatMap(({ refusals }) => refusals)
      .sort((one, other) => other.atMs - one.atMs)
      .slice(0, mostRefusals),
  }
}

/** The activity of a rule in one process, with the time at which its counts end. */
interface Part extends RuleActivity {
  readonly atMs: number
}

function ruleOf(rule: string, parts: readonly Part[], nowMs: number): RuleOverview {
  const refused = mergeTop(parts.map(refusedIn), MOST_REFUSED, laterRefusal)
  const busy = mergeTop(parts.map(busyIn), MOST_BUSY, (one) => one)
  return {
    rule,
    shadow: parts.every(({ shadow }) => shadow),
    seconds: sumOf(parts, "seconds", 1_000, SECONDS, nowMs),
    slots: sumOf(parts, "slots", SLOT_MS, SLOTS, nowMs),
    refused: refused.keys.map(limitedClient),
    refusedClients: refused.unlisted === 0 ? refused.keys.length : refusedClientsOf(parts),
    busy: busy.keys.map(({ key, count }): BusyClient => ({ key, requests: count })),
  }
}

/** Merges estimates. The result is between the largest one and their sum, whatever keys clients choose. */
function refusedClientsOf(parts: readonly Part[]): number {
  const estimates = parts.map(({ refusedClients = 0 }) => refusedClients)
  const most = Math.max(...estimates)
  const sum = estimates.reduce((all, each) => all + each, 0)
  if (most === sum) return sum
  const distinct = new DistinctKeys(SHARED_SEED)
  for (const { registers = "" } of parts) {
    const read = DistinctKeys.parse(registers)
    if (read !== undefined) distinct.merge(read)
  }
  return Math.min(sum, Math.max(most, distinct.size))
}

function refusedIn({ refused, unlistedRefusals }: RuleActivity) {
  return {
    keys: refused.map(refusedKey),
    unlisted: unlistedRefusals,
  }
}

function busyIn({ busy }: RuleActivity) {
  // The requests of clients that are not listed are left out, as in the list itself.
  return { keys: busy.map(({ key, requests }) => ({ key, count: requests, error: 0 })), unlisted: 0 }
}

/**
 * Returns by how many spans a snapshot is older than the overview. A snapshot cannot come from the future, so the clock of
 * a process that is ahead is moved back. Otherwise, the latest span would show all that it has counted since.
 */
export function spansBetween(atMs: number, nowMs: number, spanMs: number): number {
  const ahead = Math.round(Math.max(0, atMs - nowMs) / spanMs)
  return Math.floor(nowMs / spanMs) - Math.floor(atMs / spanMs) + ahead
}

/** Adds up the counts of all parts by their spans of time, and lets them end with the span of `nowMs`. */
function sumOf(
  parts: readonly Part[],
  member: "seconds" | "slots",
  spanMs: number,
  spans: number,
  nowMs: number,
): OutcomeCounts {
  const sum: Partial<Record<DecisionOutcome, readonly number[]>> = {}
  for (const outcome of OUTCOMES) {
    if (parts.every((part) => part[member][outcome] === undefined)) continue
    const total: number[] = Array(spans).fill(0)
    for (const part of parts) {
      const counts = part[member][outcome] ?? []
      const older = spansBetween(part.atMs, nowMs, spanMs)
      for (const [i, count] of counts.entries()) {
        const at = Math.min(spans - 1, spans - counts.length + i - older)
        if (at >= 0) total[at] = (total[at] as number) + count
      }
    }
    const first = total.findIndex((count) => count > 0)
    if (first >= 0) sum[outcome] = total.slice(first)
  }
  return sum
}
