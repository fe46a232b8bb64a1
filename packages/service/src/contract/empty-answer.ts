import type { ShouldForwardRequestResponse } from "../gen/sluice/v1/rate_limiter_pb.ts"

/**
 * Creates an empty response. Equivalent to `create`, but ten times as fast, because `create` inspects the schema each
 * time.
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
    reservation: "",
  }
}
