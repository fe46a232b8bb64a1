import { DistinctKeys } from "../recorder/distinct.ts"
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
  const services = [...new Set(snapshots.map(({ service }) => service))].sort()
  return {
    atMs: nowMs,
    services: services.map((service) =>
      serviceOf(
        service,
        snapshots.filter((snapshot) => snapshot.service === service),
        nowMs,
      ),
    ),
  }
}

function serviceOf(service: string, snapshots: readonly ActivitySnapshot[], nowMs: number): ServiceOverview {
  const names = new Set(snapshots.flatMap(({ rules }) => rules.map(({ rule }) => rule)))
  return {
    service,
    instances: snapshots.map(({ instance, sinceMs, atMs, status, rulesStatus }) => ({
      ...{ instance, sinceMs, atMs, status, rulesStatus },
    })),
    rules: [...names].map((name) => ruleOf(name, snapshots, nowMs)),
    refusals: snapshots
      .flatMap(({ refusals }) => refusals)
      .sort((one, other) => other.atMs - one.atMs)
      .slice(0, MOST_REFUSALS),
  }
}

/** The activity of a rule in one process, with the time at which its counts end. */
interface Part extends RuleActivity {
  readonly atMs: number
}

function ruleOf(rule: string, snapshots: readonly ActivitySnapshot[], nowMs: number): RuleOverview {
  const parts = snapshots.flatMap(({ rules, atMs }) =>
    rules.filter((each) => each.rule === rule).map((each): Part => ({ ...each, atMs })),
  )
  const distinct = new DistinctKeys()
  for (const { registers } of parts) {
    const read = registers === undefined ? undefined : DistinctKeys.parse(registers)
    if (read !== undefined) distinct.merge(read)
  }
  const refused = mergeTop(parts.map(refusedIn), MOST_REFUSED, laterRefusal)
  const busy = mergeTop(parts.map(busyIn), MOST_BUSY, (one) => one)
  return {
    rule,
    shadow: parts.every(({ shadow }) => shadow),
    seconds: sumOf(parts, "seconds", 1_000, SECONDS, nowMs),
    slots: sumOf(parts, "slots", SLOT_MS, SLOTS, nowMs),
    refused: refused.keys.map(limitedClient),
    refusedClients: distinct.size,
    busy: busy.keys.map(({ key, count }): BusyClient => ({ key, requests: count })),
  }
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
    const total: number[] = Array(spans).fill(0)
    for (const part of parts) {
      const counts = part[member][outcome] ?? []
      // The snapshot of another process may be some spans older, or newer by its clock.
      const older = Math.floor(nowMs / spanMs) - Math.floor(part.atMs / spanMs)
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
