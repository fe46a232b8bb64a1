import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf"
import { type Decision, type HeaderLine, isStricter, type Outcome } from "@sluice/core"
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
 * The answer to one request: a status for each descriptor, in order, and headers and body of the outcome that binds. `whole`
 * is that of the rules without a field; the first descriptor tells of it where it binds more than its own.
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

/** The answer about so many descriptors of a service that nobody has registered. */
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

function stricter(outcome: Outcome, other: Outcome | undefined): Outcome {
  return other !== undefined && isStricter(other.decision, outcome.decision) ? other : outcome
}

function codeOf({ allowed }: Decision): Code {
  return allowed ? Code.OK : Code.OVER_LIMIT
}

/** In milliseconds. A month and a year are those of Envoy's own service. */
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
  // Without a limit Envoy writes no header from the status. A counter that was not asked has nothing to tell: 0 left would be
  // wrong, and so would a full quota.
  if (check === undefined || decision.degraded || check.refusal === "missing-field") return { code }
  return {
    code,
    currentLimit: {
      requestsPerUnit: uint32(decision.limit),
      unit: UNITS.get(check.windowMs) ?? Unit.UNKNOWN,
      name: decision.policy,
    },
    limitRemaining: uint32(remainingOf(decision, isAdmitted)),
    ...resetOf(decision),
  }
}

/** Refused, until this request would be admitted; admitted, until all units are there again. */
function resetOf({ allowed, retryAfterMs, resetAfterMs }: Decision): Pick<Status, "durationUntilReset"> {
  const waitMs = allowed ? resetAfterMs : retryAfterMs
  if (waitMs === Number.POSITIVE_INFINITY) return {}
  // Envoy writes whole seconds into its header and drops the rest: who waits so long must not come too early.
  return { durationUntilReset: { seconds: BigInt(wholeSeconds(waitMs)) } }
}

function wholeSeconds(ms: number): number {
  return Math.ceil(ms / 1000)
}

/** Units left, with those that are given back because another descriptor was refused. */
function remainingOf({ allowed, remaining, cost, overLimit, limit }: Decision, isAdmitted: boolean): number {
  return allowed && !isAdmitted && !overLimit ? Math.min(remaining + cost, limit) : remaining
}

function uint32(value: number): number {
  return Math.min(value, MOST_UINT32)
}

/** Of a refusal that no guard has written an answer for. */
function retryAfter({ allowed, retryAfterMs }: Decision): readonly HeaderLine[] {
  if (allowed || retryAfterMs === Number.POSITIVE_INFINITY) return []
  return [["Retry-After", String(wholeSeconds(retryAfterMs))]]
}

function headerValue([key, value]: HeaderLine): { readonly key: string; readonly value: string } {
  return { key, value }
}

/** What the protocol has no word for, for an access log; undefined where there is nothing of it. */
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
