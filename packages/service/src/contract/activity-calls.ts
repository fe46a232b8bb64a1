import { create } from "@bufbuild/protobuf"
import { partitionValues } from "@sluice/core/kit"
import type { LimitedClient, OutcomeCounts, OutcomeTotals, RecentRefusal } from "@sluice/dashboard"
import type { Handlers } from "../calls.ts"
import {
  ListClientsResponseSchema,
  OverviewResponseSchema,
  type RateLimiter,
} from "../gen/sluice/v1/rate_limiter_pb.ts"
import { Code, invalidArgument, StatusError } from "../status-error.ts"
import { type ClientsParts, findService, noSuchRule } from "./clients.ts"
import { requireOwner } from "./register.ts"
import { serviceName } from "./service-name.ts"

type ActivityMethod = "listClients" | "overview"
type ActivityParts = Pick<ClientsParts, "guards" | "book" | "tokens" | "isOpen">

/** Default length of a list. */
const LISTED = 20
const MOST_LISTED = 256

/** Creates the calls that return what this instance has decided lately. */
export function activityCalls(parts: ActivityParts): Pick<Handlers<typeof RateLimiter>, ActivityMethod> {
  const { guards, tokens } = parts
  return {
    async listClients(named, context) {
      const service = serviceName(named)
      requireOwner(parts, service, context)
      const limit = limitOf(named)
      const { guard, rules } = await findService(parts, service)
      if (guard.activity === undefined) throw notRecording()
      const { atMs, services } = guard.activity.overview()
      const { rules: recorded = [], refusals = [], instances = [] } = services[0] ?? {}
      const isWanted = ({ rule }: { readonly rule: string }): boolean => ["", rule].includes(named.rule)
      const wanted = recorded.filter(isWanted)
      const names = rules.map(({ name }) => name)
      if (named.rule !== "" && wanted.length === 0 && !names.includes(named.rule)) {
        throw noSuchRule(service, named.rule, names)
      }
      // Each list is sorted, so shorten it first. Otherwise, 200 rules would have 51,200 clients to copy and sort.
      const refused = wanted.flatMap(({ rule, shadow, refused }) =>
        refused.slice(0, limit).map((client) => ({ ...client, rule, shadow })),
      )
      const busiest = wanted.flatMap(({ rule, busy }) =>
        busy.slice(0, limit).map((client) => ({ ...client, rule })),
      )
      return create(ListClientsResponseSchema, {
        atMs: BigInt(atMs),
        sinceMs: BigInt(instances[0]?.sinceMs ?? atMs),
        rules: mostFirst(
          wanted,
          ({ seconds }) => sumOf(seconds.refused) + sumOf(seconds.shadowed),
          limit,
        ).map(({ rule, shadow, seconds, slots, refusedClients }) => ({
          ...{ rule, shadow, refusedClients, seconds: seriesOf(seconds), fiveMinutes: seriesOf(slots) },
        })),
        refused: mostFirst(refused, ({ refusals }) => refusals, limit).map(refusedClient),
        busiest: mostFirst(busiest, ({ requests }) => requests, limit).map(withClient),
        refusals: refusals.filter(isWanted).slice(0, limit).map(latestRefusal),
      })
    },
    overview(request, { token = "" }) {
      const limit = limitOf(request)
      if (!guards.isRecording) throw notRecording()
      const allowed = [...guards.all()].filter(
        ({ service }) => tokens.isEmpty || tokens.allows(token, service),
      )
      const sums = allowed.flatMap(({ activity }) => activity?.sums() ?? [])
      return create(OverviewResponseSchema, {
        atMs: BigInt(sums[0]?.atMs ?? Date.now()),
        services: mostFirst(sums, ({ seconds }) => seconds.refused + seconds.shadowed, limit).map(
          ({ service, sinceMs, seconds, slots }) => ({
            ...{ service, sinceMs: BigInt(sinceMs), seconds: sumsMessage(seconds), day: sumsMessage(slots) },
          }),
        ),
      })
    },
  }
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
