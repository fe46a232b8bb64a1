import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf"
import type { Decision, PolicyCheck } from "@sluice/core"
import { type HeaderLine, isStricter, type Outcome } from "@sluice/core/adapters"
import type { UnregisteredRefusal } from "../deciding/unregistered.ts"
import {
  RateLimitResponse_Code as Code,
  type RateLimitResponse,
  type RateLimitResponse_DescriptorStatusSchema,
  RateLimitResponseSchema,
  RateLimitResponse_RateLimit_Unit as Unit,
} from "../gen/envoy/service/ratelimit/v3/rls_pb.ts"

type Status = MessageInitShape<typeof RateLimitResponse_DescriptorStatusSchema>

/**
 * Returns the response to one request. The response contains a status for each descriptor, in order, and the headers
 * and body of the strictest outcome. `whole` is the outcome of the rules without a field. If `whole` is stricter than
 * the outcome of the first descriptor, `whole` replaces that outcome.
 */
export function answerOf(descriptors: readonly Outcome[], whole: Outcome | undefined): RateLimitResponse {
  const told = descriptors.map((outcome, index) => (index === 0 ? stricter(outcome, whole) : outcome))
  const binding = told.reduce(stricter)
  const { decision, headers, rejection } = binding
  const metadata = metadataOf(decision, [...descriptors, ...(whole === undefined ? [] : [whole])])
  return create(RateLimitResponseSchema, {
    overallCode: codeOf(decision),
    statuses: told.map((outcome) => statusOf(outcome, decision.allowed)),
    responseHeadersToAdd: [...headers, ...(rejection?.headers ?? retryAfter(decision))].map(headerValue),
    ...(rejection !== undefined && { rawBody: Buffer.from(rejection.body) }),
    ...(metadata !== undefined && { dynamicMetadata: metadata }),
  })
}

/** Returns the response for a service that is not registered, with one status for each descriptor. */
export function unregisteredAnswer(
  refusal: UnregisteredRefusal | undefined,
  descriptors: number,
): RateLimitResponse {
  const code = refusal === undefined ? Code.OK : Code.OVER_LIMIT
  return create(RateLimitResponseSchema, {
    overallCode: code,
    statuses: Array.from({ length: descriptors }, () => ({ code })),
    ...(refusal !== undefined && {
      responseHeadersToAdd: [{ key: "Content-Type", value: refusal.contentType }],
      rawBody: Buffer.from(refusal.body),
    }),
  })
}

/**
 * Returns the response to a request that is refused without a decision. The response is not an error, because Envoy
 * would forward the request after an error. `reason` appears in the access log.
 */
export function undecidedAnswer(
  reason: "too_large" | "too_many_held",
  body: string,
  retryAfterMs?: number,
): RateLimitResponse {
  const wait =
    retryAfterMs === undefined ? [] : [["Retry-After", String(wholeSeconds(retryAfterMs))] as const]
  return create(RateLimitResponseSchema, {
    overallCode: Code.OVER_LIMIT,
    responseHeadersToAdd: [["Content-Type", "text/plain; charset=utf-8"] as const, ...wait].map(headerValue),
    rawBody: Buffer.from(`${body}\n`),
    dynamicMetadata: { [reason]: true },
  })
}

function stricter(outcome: Outcome, other: Outcome | undefined): Outcome {
  return other !== undefined && isStricter(other.decision, outcome.decision) ? other : outcome
}

function codeOf({ allowed }: Decision): Code {
  return allowed ? Code.OK : Code.OVER_LIMIT
}

const CALENDAR_UNITS: Readonly<Record<NonNullable<PolicyCheck["per"]>, Unit>> = {
  day: Unit.DAY,
  week: Unit.WEEK,
  month: Unit.MONTH,
  year: Unit.YEAR,
}
/** Units by their milliseconds. Envoy's headers use the same lengths of a month and a year. */
const DAY_MS = 24 * 60 * 60 * 1000
const UNITS: ReadonlyMap<number, Unit> = new Map([
  [1_000, Unit.SECOND],
  [60_000, Unit.MINUTE],
  [3_600_000, Unit.HOUR],
  [DAY_MS, Unit.DAY],
  [7 * DAY_MS, Unit.WEEK],
  [30 * DAY_MS, Unit.MONTH],
  [365 * DAY_MS, Unit.YEAR],
])

const MOST_UINT32 = 0xffff_ffff

function statusOf({ decision }: Outcome, isAdmitted: boolean): Status {
  const code = codeOf(decision)
  const check = decision.checks.find(({ policy, shadow }) => policy === decision.policy && !shadow)
  // Omit the limit if its counter was not read, because both 0 and a full quota would be wrong. Envoy then writes no
  // header for this status.
  if (check === undefined || decision.degraded || check.refusal === "missing-field") return { code }
  return {
    code,
    currentLimit: {
      requestsPerUnit: uint32(decision.limit),
      unit: unitOf(check),
      name: decision.policy,
    },
    limitRemaining: uint32(remainingOf(decision, isAdmitted)),
    ...resetOf(decision),
  }
}

function unitOf({ per, windowMs }: PolicyCheck): Unit {
  return per === undefined ? (UNITS.get(windowMs) ?? Unit.UNKNOWN) : CALENDAR_UNITS[per]
}

/**
 * Returns the time until a refused request would be admitted. For an admitted request, returns the time until all
 * units are available again.
 */
function resetOf({ allowed, retryAfterMs, resetAfterMs }: Decision): Pick<Status, "durationUntilReset"> {
  const waitMs = allowed ? resetAfterMs : retryAfterMs
  if (waitMs === Number.POSITIVE_INFINITY) return {}
  // Round up, because Envoy truncates fractions of a second in its header. Otherwise a client that waits this time
  // would retry too early.
  return { durationUntilReset: { seconds: BigInt(wholeSeconds(waitMs)) } }
}

function wholeSeconds(ms: number): number {
  return Math.ceil(ms / 1000)
}

/**
 * Returns the remaining units, including the units of this request if these are refunded because another descriptor
 * was refused.
 */
function remainingOf({ allowed, remaining, cost, overLimit, limit }: Decision, isAdmitted: boolean): number {
  return allowed && !isAdmitted && !overLimit ? Math.min(remaining + cost, limit) : remaining
}

function uint32(value: number): number {
  return Math.min(value, MOST_UINT32)
}

/** Returns the Retry-After header of a refusal for which no guard has created a rejection. */
function retryAfter({ allowed, retryAfterMs }: Decision): readonly HeaderLine[] {
  if (allowed || retryAfterMs === Number.POSITIVE_INFINITY) return []
  return [["Retry-After", String(wholeSeconds(retryAfterMs))]]
}

function headerValue([key, value]: HeaderLine): { readonly key: string; readonly value: string } {
  return { key, value }
}

/** Returns the values for the access log for which the protocol has no field. Undefined if there are no such values. */
function metadataOf(binding: Decision, outcomes: readonly Outcome[]): JsonObject | undefined {
  const decisions = outcomes.map(({ decision }) => decision)
  const shadowed = [...new Set(decisions.flatMap((decision) => decision.shadowed))]
  const delayMs = Math.max(...decisions.map((decision) => decision.delayMs))
  const metadata: JsonObject = {
    ...(!binding.allowed && { policy: binding.policy }),
    ...(decisions.some(({ degraded }) => degraded) && { degraded: true }),
    ...(decisions.some(({ overLimit }) => overLimit) && { over_limit: true }),
    ...(delayMs > 0 && { delay_ms: delayMs }),
    ...(shadowed.length > 0 && { shadowed }),
  }
  return Object.keys(metadata).length === 0 ? undefined : metadata
}
