import { create } from "@bufbuild/protobuf"
import type { Asking } from "../calls.ts"
import {
  type ShouldForwardRequestResponse,
  type ShouldForwardRequestsRequest,
  type ShouldForwardRequestsResponse,
  ShouldForwardRequestsResponseSchema,
} from "../gen/sluice/v1/rate_limiter_pb.ts"
import { invalidArgument, StatusError } from "../status-error.ts"
import { statusMessage } from "../status-message.ts"
import { emptyAnswer } from "./empty-answer.ts"
import type { Attempt, Forwarding } from "./forward.ts"

type Answer = ShouldForwardRequestResponse

/**
 * Decides many requests in order, which are sent to the store together. One that is wrong has its error in its own answer.
 * @throws StatusError where there are more than `mostRequests`.
 */
export function decideMany(
  forwarding: Forwarding,
  { requests, brief }: ShouldForwardRequestsRequest,
  asking: Asking,
  mostRequests: number,
): ShouldForwardRequestsResponse | Promise<ShouldForwardRequestsResponse> {
  if (requests.length > mostRequests) {
    const description = `has ${requests.length} requests; ${mostRequests} are accepted`
    throw invalidArgument({ field: "requests", description })
  }
  const attempts = requests.map((request) => forwarding.attempt(request, asking, brief))
  return attempts.some((attempt) => attempt instanceof Promise)
    ? inOrder(attempts).then(answered)
    : answered(attempts as Attempt[])
}

/** Waits for each in turn: mostly all come by one reply of the store, and `Promise.all` would make three objects of each. */
async function inOrder(attempts: readonly (Attempt | Promise<Attempt>)[]): Promise<Attempt[]> {
  const ended: Attempt[] = []
  for (const attempt of attempts) ended.push(attempt instanceof Promise ? await attempt : attempt)
  return ended
}

function answered(attempts: readonly Attempt[]): ShouldForwardRequestsResponse {
  const responses = attempts.map((attempt) => (attempt instanceof Error ? failed(attempt) : attempt))
  // Given to `create` they would be looked at one by one.
  return Object.assign(create(ShouldForwardRequestsResponseSchema), { responses })
}

/** @throws what is no StatusError: a fault of ours is one of the whole call. */
function failed(error: Error): Answer {
  if (!(error instanceof StatusError)) throw error
  return { ...emptyAnswer(), error: statusMessage(error) }
}
