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
import type { Forwarding } from "./forward.ts"

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
  const answers = requests.map((request) => {
    try {
      return forwarding.decide(request, asking, brief)
    } catch (error) {
      return failed(error)
    }
  })
  const answered = (responses: Answer[]): ShouldForwardRequestsResponse =>
    // Given to `create` they would be looked at one by one.
    Object.assign(create(ShouldForwardRequestsResponseSchema), { responses })
  if (!answers.some((answer) => answer instanceof Promise)) return answered(answers as Answer[])
  return Promise.allSettled(answers).then((ends) =>
    answered(ends.map((end) => (end.status === "fulfilled" ? end.value : failed(end.reason)))),
  )
}

function failed(error: unknown): Answer {
  if (!(error instanceof StatusError)) throw error
  return { ...emptyAnswer(), error: statusMessage(error) }
}
