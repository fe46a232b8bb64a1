import { fileURLToPath } from "node:url"
import { credentials, loadPackageDefinition, type ServiceClientConstructor } from "@grpc/grpc-js"
import { loadSync } from "@grpc/proto-loader"

/** What the decision service answers; numbers are milliseconds and units. */
export interface Verdict {
  readonly shouldForward: boolean
  /** To be set on the client's response, whether the request is forwarded or not. */
  readonly headers: Readonly<Record<string, string>>
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

/** How long a gateway waits for a decision, and how long it does not ask again when there was none. */
const DEADLINE_MS = 100
const PAUSE_MS = 1_000

/** Opens a client of the service at `host:port`. It needs nothing of ours but the proto file, as in any other language. */
export function openDecisionClient(address: string): DecisionClient {
  const proto = fileURLToPath(import.meta.resolve("@sluice/service/proto/sluice/v1/rate_limiter.proto"))
  const root = fileURLToPath(new URL("../..", `file://${proto}`))
  const definition = loadPackageDefinition(loadSync(proto, { includeDirs: [root], longs: Number, defaults: true }))
  const { RateLimiter } = (definition.sluice as never)["v1"] as { RateLimiter: ServiceClientConstructor }
  const client = new RateLimiter(address, credentials.createInsecure())
  let askAgainAt = 0
  return {
    ask: (serviceId, request) =>
      new Promise((resolve, reject) => {
        // While the service is gone nobody waits for it, but for one request a second.
        if (Date.now() < askAgainAt) return reject(new Error("The decision service does not answer"))
        const call = { serviceId, request: JSON.stringify(request) }
        const done = (error: Error | null, verdict: Verdict): void => {
          if (error === null) return resolve(verdict)
          askAgainAt = Date.now() + PAUSE_MS
          reject(error)
        }
        client.shouldForwardRequest?.(call, { deadline: Date.now() + DEADLINE_MS }, done)
      }),
    close: () => client.close(),
  }
}
