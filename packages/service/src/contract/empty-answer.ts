import type { ShouldForwardRequestResponse } from "../gen/sluice/v1/rate_limiter_pb.ts"

/**
 * An answer that says nothing yet: what `create` makes, which finds out anew each time which fields there are and takes ten times as
 * long.
 */
export function emptyAnswer(): ShouldForwardRequestResponse {
  return {
    $typeName: "sluice.v1.ShouldForwardRequestResponse",
    shouldForward: false,
    rejectionMessage: "",
    limit: 0n,
    remaining: 0n,
    policy: "",
    headers: {},
    degraded: false,
    delayMs: 0n,
    resetAfterMs: 0n,
    overLimit: false,
    shadowed: [],
    statusCode: 0,
    body: "",
  }
}
