import { OverloadError, type StatusError } from "../status-error.ts"

/**
 * Returns the header with which clients delay a retry:
 * https://github.com/grpc/proposal/blob/master/A6-client-retries.md#pushback
 */
export function retryHeaders(error: StatusError): Record<string, string> | undefined {
  return error instanceof OverloadError ? { "grpc-retry-pushback-ms": String(error.retryAfterMs) } : undefined
}
