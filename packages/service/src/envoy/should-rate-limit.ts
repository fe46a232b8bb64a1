import type { MaybePromise, Outcome } from "@sluice/core"
import type { Asking, Handlers } from "../calls.ts"
import type { AskedRequest } from "../deciding/asked-request.ts"
import { hasLeft, refund } from "../deciding/checking.ts"
import { heldBy, noOutcome } from "../deciding/held-request.ts"
import type { ServiceGuard, ServiceGuards } from "../deciding/service-guards.ts"
import type { Unregistered } from "../deciding/unregistered.ts"
import type {
  RateLimitRequest,
  RateLimitResponse,
  RateLimitService,
} from "../gen/envoy/service/ratelimit/v3/rls_pb.ts"
import { requireTokenOf, type Tokens } from "../registering/tokens.ts"
import { answerOf, unregisteredAnswer } from "./answers.ts"
import { serviceAsked } from "./bounds.ts"
import { readDescriptors } from "./descriptors.ts"

/**
 * Envoy's question whether a request is to be refused. Its descriptors are decided each by itself, all at once; when one is
 * refused, what the others took is given back, so that a refused request takes nothing. Never more is admitted than the rules
 * say; but while the units of a request are out that is refused in the end, another may be refused that would have fit.
 */
export function rateLimiting(
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
    if (isGone) throw noOutcome(asking)
    return answerOf(made.slice(0, descriptors.length), made[descriptors.length])
  }
  const outcomes = asked.map((each) => outcomeOf(each, found, asking))
  return outcomes.some((outcome) => outcome instanceof Promise)
    ? Promise.all(outcomes).then(answer)
    : answer(outcomes as (Outcome | undefined)[])
}

/** Undefined where the caller has gone while it was held. */
function outcomeOf(
  asked: AskedRequest,
  { guard }: ServiceGuard,
  asking: Asking,
): MaybePromise<Outcome | undefined> {
  if (asked.cost > 0) return guard.check(asked.facts, asked, asking)
  return guard.limiter
    .peek(asked, { cost: 1 })
    .then((decision) => ({ decision, headers: NONE, removed: NONE }))
}

const NONE: readonly never[] = []
