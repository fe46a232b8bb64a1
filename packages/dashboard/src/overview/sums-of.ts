import {
  type ActivitySnapshot,
  OUTCOMES,
  type OutcomeTotals,
  SECONDS,
  type ServiceSums,
  SLOT_MS,
  SLOTS,
} from "../recorder/snapshot.ts"
import { spansBetween } from "./overview-of.ts"

/** Returns the sums over all rules of a snapshot, for the last 300 seconds and the last day before `nowMs`. */
export function sumsIn({ service, sinceMs, atMs, rules }: ActivitySnapshot, nowMs: number): ServiceSums {
  const sumOf = (member: "seconds" | "slots", spanMs: number, spans: number): OutcomeTotals => {
    const left = Math.max(0, spans - Math.max(0, spansBetween(atMs, nowMs, spanMs)))
    const totalOf = (counts: readonly number[] = []): number =>
      counts.slice(Math.max(0, counts.length - left)).reduce((sum, count) => sum + count, 0)
    return totals((outcome) => rules.reduce((sum, rule) => sum + totalOf(rule[member][outcome]), 0))
  }
  return {
    ...{ service, sinceMs, instances: 1 },
    ...{ seconds: sumOf("seconds", 1_000, SECONDS), slots: sumOf("slots", SLOT_MS, SLOTS) },
  }
}

/** Adds up the sums of each service. Returns them by falling number of recent refusals. */
export function mergeSums(all: readonly ServiceSums[]): readonly ServiceSums[] {
  const services = new Map<string, ServiceSums>()
  for (const sums of all) {
    const known = services.get(sums.service)
    services.set(sums.service, known === undefined ? sums : added(known, sums))
  }
  return [...services.values()].sort(byRefusals)
}

/** Sorts by falling number of recent refusals, and services without refusals by requests. */
export function byRefusals(one: ServiceSums, other: ServiceSums): number {
  return refusalsIn(other) - refusalsIn(one) || other.seconds.admitted - one.seconds.admitted
}

function refusalsIn({ seconds }: ServiceSums): number {
  return seconds.refused + seconds.shadowed
}

function added(one: ServiceSums, other: ServiceSums): ServiceSums {
  const sum = (member: "seconds" | "slots"): OutcomeTotals =>
    totals((outcome) => one[member][outcome] + other[member][outcome])
  return {
    service: one.service,
    instances: one.instances + other.instances,
    sinceMs: Math.max(one.sinceMs, other.sinceMs),
    seconds: sum("seconds"),
    slots: sum("slots"),
  }
}

function totals(totalOf: (outcome: keyof OutcomeTotals) => number): OutcomeTotals {
  return Object.fromEntries(OUTCOMES.map((outcome) => [outcome, totalOf(outcome)])) as OutcomeTotals
}
