import { fileURLToPath } from "node:url"
import {
  credentials,
  loadPackageDefinition,
  type ServiceClientConstructor,
  type ServiceError,
  status,
} from "@grpc/grpc-js"
import { loadSync } from "@grpc/proto-loader"

/** The response of the decision service. Numbers are milliseconds and units. */
export interface Verdict {
  readonly shouldForward: boolean
  /** Headers for the client's response, whether or not the request is forwarded. */
  readonly headers: Readonly<Record<string, string>>
  /** Milliseconds to wait before the request is forwarded. */
  readonly delayMs: number
  /** Status of the response to a refused client. */
  readonly statusCode: number
  readonly body: string
}

/** A client of the decision service. */
export interface DecisionClient {
  /**
   * Requests a decision about a request to a service. Rejects if no response arrives in time. For a short time after
   * such a timeout, rejects immediately.
   */
  ask(serviceId: number, request: object): Promise<Verdict>
  close(): void
}

/** Milliseconds without further calls after a call received no response. */
const PAUSE_MS = 1_000

/**
 * Reconnects within a second or two, even after a long outage. Keepalive detects a service that has disappeared
 * silently. With several addresses, the calls go to all of them in turn. Otherwise all calls would go to one address
 * until it fails.
 */
const CONNECTION = {
  "grpc.service_config": JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
  "grpc.max_reconnect_backoff_ms": PAUSE_MS,
  "grpc.keepalive_time_ms": 10_000,
  "grpc.keepalive_timeout_ms": 1_000,
}

/**
 * Statuses that a client can cause by sending long values. The service is still running, so the request must not be
 * forwarded.
 */
const CLIENT_CAUSED: readonly status[] = [status.INVALID_ARGUMENT, status.RESOURCE_EXHAUSTED]
const TOO_LARGE: Verdict = {
  ...{ shouldForward: false, headers: {}, delayMs: 0 },
  ...{ statusCode: 431, body: "The request's headers are too large.\n" },
}

/**
 * Opens a client of the service at `host:port`, or of its instances at `ipv4:host:port,host:port`. The client waits
 * at most `deadlineMs` for a decision. Like a client in any other language, it needs only the proto file from Sluice.
 * The client calls `say` with the reason once when the service becomes unavailable, and again when it recovers.
 */
export function openDecisionClient(
  address: string,
  deadlineMs: number = 100,
  say: (line: string) => void = () => undefined,
): DecisionClient {
  const proto = fileURLToPath(import.meta.resolve("@sluice/service/proto/sluice/v1/rate_limiter.proto"))
  const root = fileURLToPath(new URL("../..", `file://${proto}`))
  const definition = loadPackageDefinition(
    loadSync(proto, { includeDirs: [root], longs: Number, defaults: true }),
  )
  const { v1 } = definition.sluice as unknown as { v1: { RateLimiter: ServiceClientConstructor } }
  const client = new v1.RateLimiter(address, credentials.createInsecure(), CONNECTION)
  const call = (message: object): Promise<Verdict> =>
    new Promise((resolve, reject) => {
      client.shouldForwardRequest?.(
        message,
        { deadline: Date.now() + deadlineMs },
        (error: ServiceError | null, verdict: Verdict) => {
          if (error === null) resolve(verdict)
          else if (CLIENT_CAUSED.includes(error.code)) resolve(TOO_LARGE)
          else reject(error)
        },
      )
    })
  let askAgainAt = 0
  let answers = 0
  let isGone = false
  return {
    async ask(serviceId, request) {
      // While the service is unavailable, only one request per second waits for it.
      if (Date.now() < askAgainAt) throw new Error("The decision service does not respond")
      const before = answers
      try {
        const verdict = await call({ serviceId, request: JSON.stringify(request) })
        answers++
        if (isGone) say(`The decision service at ${address} responds again`)
        isGone = false
        return verdict
      } catch (error) {
        // If other calls received a response in the meantime, the service is running. This call may be waiting in the
        // queue of a rule.
        if (answers !== before) throw error
        askAgainAt = Date.now() + PAUSE_MS
        if (!isGone) say(`The decision service at ${address} does not respond: ${(error as Error).message}`)
        isGone = true
        throw error
      }
    },
    close: () => client.close(),
  }
}
