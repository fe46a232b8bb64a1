import { partitionValues } from "@sluice/core/kit"
import type { ServiceOverview } from "@sluice/dashboard"
import type { TopAnswer } from "../top-table.ts"
import type { TopQuery } from "./clients-backend.ts"

const LISTED = 20
const NO_COUNTS = { admitted: [], refused: [], shadowed: [], overLimit: [], degraded: [] }

/** Returns what processes have recorded of a service in the form of `ListClients`. */
export function topAnswer(
  { service, instances, rules, refusals }: ServiceOverview,
  atMs: number,
  { rule: asked, limit = LISTED }: TopQuery,
): TopAnswer & Readonly<Record<"busiest" | "refusals", readonly object[]>> {
  const isWanted = ({ rule }: { readonly rule: string }): boolean => asked === undefined || asked === rule
  const wanted = rules.filter(isWanted)
  const clients = wanted.flatMap(({ rule, shadow, refused }) =>
    refused.map(({ lastMs, untilMs, ...client }) => ({
      ...{ rule, shadow, ...named(client), lastMs: text(lastMs) },
      ...(untilMs !== null && { untilMs: text(untilMs) }),
    })),
  )
  const busiest = wanted.flatMap(({ rule, busy }) => busy.map((client) => ({ rule, ...named(client) })))
  const latest = refusals.filter(isWanted).map(({ atMs, retryAfterMs, ...refusal }) => ({
    ...{ ...named(refusal), atMs: text(atMs) },
    ...(retryAfterMs !== null && { retryAfterMs: text(retryAfterMs) }),
  }))
  const listed = wanted.map(({ rule, shadow, refusedClients, seconds, slots }) => ({
    ...{ rule, shadow, refusedClients, seconds: { ...NO_COUNTS, ...seconds } },
    fiveMinutes: { ...NO_COUNTS, ...slots },
  }))
  return {
    ...{
      service,
      atMs: text(atMs),
      sinceMs: text(instances.reduce((since, { sinceMs }) => Math.max(since, sinceMs), 0) || atMs),
      instances: instances.length,
    },
    rules: listed.sort((one, other) => refusedBy(other) - refusedBy(one)).slice(0, limit),
    refused: clients.sort((one, other) => other.refusals - one.refusals).slice(0, limit),
    busiest: busiest.sort((one, other) => other.requests - one.requests).slice(0, limit),
    refusals: latest.slice(0, limit),
  }
}

function refusedBy({ seconds }: TopAnswer["rules"][number]): number {
  return [...seconds.refused, ...seconds.shadowed].reduce((sum, count) => sum + count, 0)
}

/** Adds the values of the rule's fields, as far as the text of the counter contains them. */
function named<Listed extends { readonly key: string }>(
  listed: Listed,
): Listed & { readonly client: readonly string[] } {
  return { ...listed, client: partitionValues(listed.key) ?? [] }
}

function text(ms: number): string {
  return `${Math.ceil(ms)}`
}
