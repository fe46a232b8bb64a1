import { fileURLToPath } from "node:url"
import { credentials, loadPackageDefinition, type ServiceClientConstructor } from "@grpc/grpc-js"
import { loadSync } from "@grpc/proto-loader"

/** What the decision service answers; numbers are milliseconds and units. */
export interface Verdict {
  readonly shouldForward: boolean
  /** To be set on the client's response, whether the request is forwarded or not. */
  readonly headers: Readonly<Record<string, string>>
  /** How long to hold it before it is forwarded. */
  readonly delayMs: number
  /** For a client that is refused. */
  readonly statusCode: number
  readonly body: string
}

/** A client of the decision service. */
export interface DecisionClient {
  /** Asks about a request to a service. Rejects when there is no answer in time; soon after that, at once. */
  ask(serviceId: number, request: object): Promise<Verdict>
  close(): void
}

/** How long it does not ask again when there was no answer. */
const PAUSE_MS = 1_000

/** A service that is back is found within a second or two, however long it was gone, and one that has gone without a word is found out. */
const CONNECTION = {
  "grpc.max_reconnect_backoff_ms": PAUSE_MS,
  "grpc.keepalive_time_ms": 10_000,
  "grpc.keepalive_timeout_ms": 1_000,
}

/**
 * Opens a client of the service at `host:port`, which waits so many milliseconds for a decision. It needs nothing of ours but the
 * proto file, as in any other language. `say` is told once that the service is gone, with why, and once that it is back.
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
        (error: Error | null, verdict: Verdict) => (error === null ? resolve(verdict) : reject(error)),
      )
    })
  let askAgainAt = 0
  let answers = 0
  let isGone = false
  return {
    async ask(serviceId, request) {
      // While the service is gone nobody waits for it, but for one request a second.
      if (Date.now() < askAgainAt) throw new Error("The decision service does not answer")
      const before = answers
      try {
        const verdict = await call({ serviceId, request: JSON.stringify(request) })
        answers++
        if (isGone) say(`The decision service at ${address} answers again`)
        isGone = false
        return verdict
      } catch (error) {
        // Where others were answered meanwhile the service is there: this one may be held by a rule that queues.
        if (answers !== before) throw error
        askAgainAt = Date.now() + PAUSE_MS
        if (!isGone) say(`The decision service at ${address} does not answer: ${(error as Error).message}`)
        isGone = true
        throw error
      }
    },
    close: () => client.close(),
  }
}
