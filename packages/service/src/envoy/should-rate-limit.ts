import { toBinary } from "@bufbuild/protobuf"
import type { Outcome } from "@sluice/core/adapters"
import type { MaybePromise } from "@sluice/core/kit"
import { type Asking, type Call, callsOf, type Handlers } from "../calls.ts"
import type { AskedRequest } from "../deciding/asked-request.ts"
import { hasLeft, refund } from "../deciding/checking.ts"
import { heldBy, noOutcome } from "../deciding/held-request.ts"
import type { ServiceGuard, ServiceGuards } from "../deciding/service-guards.ts"
import type { Unregistered } from "../deciding/unregistered.ts"
import {
  type RateLimitRequest,
  type RateLimitResponse,
  RateLimitResponseSchema,
  RateLimitService,
} from "../gen/envoy/service/ratelimit/v3/rls_pb.ts"
import { requireKnownToken, requireTokenOf, type Tokens } from "../registering/tokens.ts"
import { CostlyMessageError, OverloadError, type StatusError } from "../status-error.ts"
import { answerOf, undecidedAnswer, unregisteredAnswer } from "./answers.ts"
import { hasTooMany, serviceAsked } from "./bounds.ts"
import { readDescriptors } from "./descriptors.ts"

/** Maximum bytes of a request. Envoy accepts headers of 60 KiB, and each of 64 descriptors may contain them. */
const MOST_BYTES = 4 * 2 ** 20
/** Number of bytes above which a request must contain long values from the client. */
const LONG_BYTES = 16 * 2 ** 10

const TOO_LARGE = undecidedAnswer("too_large", "The request is too large to be checked against its limits.")

/**
 * Creates the call that Envoy uses. A request that is too large is refused, because Envoy would forward it after an
 * error.
 */
export function envoyCalls(guards: ServiceGuards, unregistered: Unregistered, tokens: Tokens): Call[] {
  const answer = toBinary(RateLimitResponseSchema, TOO_LARGE)
  const tooLarge = { maxBytes: MOST_BYTES, longBytes: LONG_BYTES, answer }
  const calls = callsOf(RateLimitService, rateLimiting(guards, unregistered, tokens), {
    authorize: (token) => requireKnownToken(tokens, token),
  })
  return calls.map((call) => ({
    ...call,
    tooLarge,
    answerBytes(message, context) {
      try {
        return call.answerBytes(message, context)
      } catch (error) {
        if (error instanceof CostlyMessageError) return answer
        throw error
      }
    },
  }))
}

/**
 * Creates the handler that decides whether Envoy refuses a request. All descriptors are decided separately and at the
 * same time. If one descriptor is refused, the units of the others are refunded, so that a refused request takes no
 * units.
 *
 * The handler never admits more requests than the rules allow. However, another request may be refused unnecessarily
 * until the units of a refused request are refunded.
 */
function rateLimiting(
  guards: ServiceGuards,
  unregistered: Unregistered,
  tokens: Tokens,
): Handlers<typeof RateLimitService> {
  return {
    shouldRateLimit(request, context) {
      const { asking, places } = context
      const service = serviceAsked(request)
      if (!tokens.isEmpty) requireTokenOf(service, tokens, context.token)
      places.serve(service)
      const decide = (found: ServiceGuard | undefined): MaybePromise<RateLimitResponse> =>
        found === undefined
          ? unregisteredAnswer(unregistered.refusal(service), request.descriptors.length)
          : hasTooMany(request)
            ? TOO_LARGE
            : decided(request, found, heldBy(found, asking, places))
      const found = guards.of(service)
      return found instanceof Promise ? found.then(decide) : decide(found)
    },
  }
}

function decided(
  request: RateLimitRequest,
  found: ServiceGuard,
  asking: Asking,
): MaybePromise<RateLimitResponse> {
  const { descriptors, whole } = readDescriptors(request, found.countsAll)
  const asked = whole === undefined ? descriptors : [...descriptors, whole]
  const answer = (outcomes: readonly (Outcome | undefined)[]): RateLimitResponse => {
    const made = outcomes.filter((outcome) => outcome !== undefined)
    const isGone = made.length < outcomes.length || hasLeft(asking)
    if (isGone || made.some(({ decision }) => !decision.allowed)) {
      for (const { decision } of made) refund(found, decision)
    }
    if (isGone) return undecided(noOutcome(asking))
    return answerOf(made.slice(0, descriptors.length), made[descriptors.length])
  }
  const outcomes = asked.map((each) => outcomeOf(each, found, asking))
  return outcomes.some((outcome) => outcome instanceof Promise)
    ? Promise.all(outcomes).then(answer)
    : answer(outcomes as (Outcome | undefined)[])
}

/** Refuses a request for which no waiting place was free. Throws any other error. */
function undecided(error: StatusError): RateLimitResponse {
  if (!(error instanceof OverloadError)) throw error
  return undecidedAnswer("too_many_held", "Too many requests are already waiting.", error.retryAfterMs)
}

/** Returns the outcome of one request. Undefined if the held request lost its caller or no place was free for it. */
function outcomeOf(
  asked: AskedRequest,
  { guard }: ServiceGuard,
  asking: Asking,
): MaybePromise<Outcome | undefined> {
  if (asked.cost > 0) return guard.check(asked.facts, asked, asking)
  return guard.limiter
    .peek({ ...asked, cost: 1 })
    .then((decision) => ({ decision, headers: NONE, removed: NONE }))
}

const NONE: readonly never[] = []
