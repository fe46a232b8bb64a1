import { create } from "@bufbuild/protobuf"
import type { Clock } from "@sluice/core"
import { partitionValues } from "@sluice/core/kit"
import type {
  ActivityOverview,
  LimitedClient,
  OutcomeCounts,
  OutcomeTotals,
  RecentRefusal,
} from "@sluice/dashboard"
import type { Handlers } from "../calls.ts"
import {
  type ListClientsResponse,
  ListClientsResponseSchema,
  type OverviewResponse,
  OverviewResponseSchema,
  type RateLimiter,
} from "../gen/sluice/v1/rate_limiter_pb.ts"
import { Code, invalidArgument, StatusError } from "../status-error.ts"
import { type ClientsParts, findService, noSuchRule } from "./clients.ts"
import { KeptResponses } from "./kept-responses.ts"
import { requireOwner } from "./register.ts"
import { serviceName } from "./service-name.ts"

type ActivityMethod = "listClients" | "overview"
type ActivityParts = Pick<ClientsParts, "guards" | "book" | "tokens" | "isOpen">

/** Default length of a list. */
const LISTED = 20
const MOST_LISTED = 256

/**
 * Creates the calls that return what has been decided lately. `clock` is the clock of a test.
 */
export function activityCalls(
  parts: ActivityParts,
  clock?: Clock,
): Pick<Handlers<typeof RateLimiter>, ActivityMethod> {
  const { tokens, guards } = parts
  const lists = new KeptResponses<ListClientsResponse>(clock)
  const overviews = new KeptResponses<OverviewResponse>(clock)
  return {
    async listClients(named, context) {
      const service = serviceName(named)
      requireOwner(parts, service, context)
      const limit = limitOf(named)
      const { rules } = await findService(parts, service)
      const { activity } = guards
      if (activity === undefined) throw notRecording()
      const names = rules.map(({ name }) => name)
      return lists.of([service, named.rule, limit], async () => {
        const overview = await activity.overviewOfAll(service)
        const recorded = overview.services.some((each) => each.rules.some(({ rule }) => rule === named.rule))
        if (named.rule === "" || recorded || names.includes(named.rule))
          return listed(overview, named.rule, limit)
        throw noSuchRule(service, named.rule, names)
      })
    },
    async overview(request, { token = "" }) {
      const limit = limitOf(request)
      const { activity } = guards
      if (activity === undefined) throw notRecording()
      return overviews.of([token, limit], async () => {
        const { atMs, services, missing = "" } = await activity.sumsOfAll()
        const allowed = services.filter(({ service }) => tokens.isEmpty || tokens.allows(token, service))
        return create(OverviewResponseSchema, {
          ...{ atMs: BigInt(atMs), missing },
          services: allowed.slice(0, limit).map(({ service, instances, sinceMs, seconds, slots }) => ({
            ...{ service, instances, sinceMs: BigInt(sinceMs) },
            ...{ seconds: sumsMessage(seconds), day: sumsMessage(slots) },
          })),
        })
      })
    },
  }
}

function listed(
  { atMs, services: [found], missing = "" }: ActivityOverview,
  rule: string,
  limit: number,
): ListClientsResponse {
  const { rules = [], refusals = [], instances = [] } = found ?? {}
  const isWanted = (each: { readonly rule: string }): boolean => ["", each.rule].includes(rule)
  const wanted = rules.filter(isWanted)
  // Each list is sorted, so shorten it first. Otherwise, 200 rules would have 51,200 clients to copy and sort.
  const refused = wanted.flatMap(({ rule, shadow, refused }) =>
    refused.slice(0, limit).map((client) => ({ ...client, rule, shadow })),
  )
  const busiest = wanted.flatMap(({ rule, busy }) =>
    busy.slice(0, limit).map((client) => ({ ...client, rule })),
  )
  return create(ListClientsResponseSchema, {
    ...{ atMs: BigInt(atMs), instances: instances.length, missing },
    sinceMs: BigInt(instances.reduce((since, { sinceMs }) => Math.max(since, sinceMs), 0) || atMs),
    rules: mostFirst(wanted, ({ seconds }) => sumOf(seconds.refused) + sumOf(seconds.shadowed), limit).map(
      ({ rule, shadow, seconds, slots, refusedClients }) => ({
        ...{ rule, shadow, refusedClients, seconds: seriesOf(seconds), fiveMinutes: seriesOf(slots) },
      }),
    ),
    refused: mostFirst(refused, ({ refusals }) => refusals, limit).map(refusedClient),
    busiest: mostFirst(busiest, ({ requests }) => requests, limit).map(withClient),
    refusals: refusals.filter(isWanted).slice(0, limit).map(latestRefusal),
  })
}

function limitOf({ limit }: { readonly limit: number }): number {
  if (limit <= MOST_LISTED) return limit === 0 ? LISTED : limit
  throw invalidArgument({ field: "limit", description: `is ${limit}; at most ${MOST_LISTED} is accepted` })
}

/** Returns the `limit` items with the largest numbers, by falling number. */
function mostFirst<Item>(items: readonly Item[], numberOf: (item: Item) => number, limit: number): Item[] {
  return items
    .map((item) => ({ item, number: numberOf(item) }))
    .sort((one, other) => other.number - one.number)
    .slice(0, limit)
    .map(({ item }) => item)
}

function sumOf(counts: readonly number[] = []): number {
  return counts.reduce((sum, count) => sum + count, 0)
}

/** Copies nothing, because the messages of protobuf only lack the word readonly. */
function seriesOf(counts: OutcomeCounts): { [Name in keyof OutcomeCounts]: number[] } {
  return counts as { [Name in keyof OutcomeCounts]: number[] }
}

/** Adds the values of the rule's fields, as far as the text of the counter contains them. */
function withClient<Listed extends { readonly key: string }>(listed: Listed): Listed & { client: string[] } {
  return { ...listed, client: [...(partitionValues(listed.key) ?? [])] }
}

function refusedClient({
  lastMs,
  untilMs,
  ...client
}: LimitedClient & { readonly rule: string; readonly shadow: boolean }) {
  return {
    ...withClient(client),
    lastMs: bigintOf(lastMs),
    ...(untilMs !== null && { untilMs: bigintOf(untilMs) }),
  }
}

function latestRefusal({ atMs, retryAfterMs, ...refusal }: RecentRefusal) {
  return {
    ...withClient(refusal),
    atMs: bigintOf(atMs),
    ...(retryAfterMs !== null && { retryAfterMs: bigintOf(retryAfterMs) }),
  }
}

function sumsMessage({ admitted, refused, shadowed, overLimit, degraded }: OutcomeTotals) {
  return {
    admitted: BigInt(admitted),
    refused: BigInt(refused),
    shadowed: BigInt(shadowed),
    overLimit: BigInt(overLimit),
    degraded: BigInt(degraded),
  }
}

/** Rounds up, because the time of a clock may have a fraction. */
function bigintOf(ms: number): bigint {
  return BigInt(Math.ceil(ms))
}

function notRecording(): StatusError {
  return new StatusError(
    Code.FAILED_PRECONDITION,
    "This decision service does not record its decisions. Start it with --activity, or set SLUICE_ACTIVITY=true.",
  )
}
