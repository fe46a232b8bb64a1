import { checkAll, type Outcome } from "@sluice/core/adapters"
import type { CallContext } from "../calls.ts"
import type { ShouldForwardRequestRequest } from "../gen/sluice/v1/rate_limiter_pb.ts"
import { Code, invalidArgument, StatusError, TokenError } from "../status-error.ts"
import { emptyAnswer } from "./empty-answer.ts"
import { answered, type ForwardAnswer, type Forwarding } from "./forward.ts"

/**
 * Decides requests of several services, and admits either all of them or none. If a request is invalid, rejects with
 * a StatusError that names this request. Refunds the units if the caller has disconnected.
 */
export async function forwardGroup(
  forwarding: Forwarding,
  requests: readonly ShouldForwardRequestRequest[],
  context: CallContext,
  isBrief: boolean,
): Promise<ForwardAnswer[]> {
  const members = await Promise.all(
    requests.map(async (request, index) => {
      try {
        return await forwarding.member(request, context, isBrief)
      } catch (error) {
        throw error instanceof StatusError ? ofRequest(index, error) : error
      }
    }),
  )
  requireDifferentServices(members.map(({ question }) => question.service))
  const refusal = members.find(({ uncounted }) => uncounted?.shouldForward === false)?.uncounted
  if (refusal !== undefined) {
    return members.map(({ uncounted }) =>
      uncounted?.shouldForward === false ? uncounted : heldBack(refusal.statusCode),
    )
  }
  const outcomes = await checkAll(
    members.flatMap(({ counted }) =>
      counted === undefined
        ? []
        : [{ guard: counted.found.guard, facts: counted.asked.facts, request: counted.asked }],
    ),
  )
  const refused: Outcome | undefined = outcomes.find(({ decision }) => !decision.allowed)
  const inOrder = outcomes.values()
  return members.map(({ question, counted, uncounted }) => {
    if (counted !== undefined) {
      return answered(inOrder.next().value as Outcome, counted.found, question, context.asking)
    }
    // A request for a service without rules is not counted. Such a request is forwarded only if all other requests of
    // the group are admitted.
    return refused === undefined ? (uncounted as ForwardAnswer) : heldBack(refused.rejection?.status ?? 429)
  })
}

/** Returns the response to a request that is not forwarded because another request of its group was refused. */
function heldBack(statusCode: number): ForwardAnswer {
  return { ...emptyAnswer(), statusCode }
}

/** Returns a copy of the error that also names the index of its request in the list. */
function ofRequest(index: number, { code, message, violations }: StatusError): StatusError {
  const place = `requests[${index}]`
  const placed = violations.map(({ field, description }) => ({ field: `${place}.${field}`, description }))
  const text = violations.length > 0 ? `${place}.${message}` : `${place}: ${message}`
  return code === Code.UNAUTHENTICATED || code === Code.PERMISSION_DENIED
    ? new TokenError(code, text, placed)
    : new StatusError(code, text, placed)
}

function requireDifferentServices(services: readonly string[]): void {
  for (const [index, service] of services.entries()) {
    const earlier = services.indexOf(service)
    if (earlier === index) continue
    const description = `is the service of requests[${earlier}] too; with all_or_nothing, give one request for each service, with their sum as its cost`
    throw invalidArgument({ field: `requests[${index}].service`, description })
  }
}
