import { once } from "node:events"
import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"

/** The number of requests that a client may send in a window. */
export interface Limit {
  readonly limit: number
  readonly windowMs: number
}

/** The setup of an app. The app runs behind one proxy, which sends the client's address in `X-Forwarded-For`. */
export interface AppSetup {
  /** The limits of every client address. All of these limits apply. The limit with the shorter window is first. */
  readonly limits: readonly Limit[]
  /**
   * The Redis server that stores the counters, and whether it responds now. Default: counters are stored in the
   * memory of the process.
   */
  readonly redis?: { readonly port: number; readonly isUp: boolean }
  /** The timeout of Redis calls, for limiters that have one. */
  readonly storeTimeoutMs: number
  /** Whether the limits apply to the whole app or to its only route. Default: "app". */
  readonly mount?: "app" | "route"
  /** The most keys in the memory store, if the store has such an option. */
  readonly maxKeys?: number
}

/** An app that responds to GET and HEAD requests for "/" with 200 unless its limiter refuses the request. */
export interface RunningApp {
  /** The port on 127.0.0.1. */
  readonly port: number
  close(): Promise<void>
}

export type StartApp = (setup: AppSetup) => Promise<RunningApp>

/** Starts a server on a free port. `onClose` releases the resources that the app has opened. */
export async function serve(
  listener: RequestListener,
  onClose: () => void | Promise<void>,
): Promise<RunningApp> {
  const server = createServer(listener)
  // Keep idle connections open, because drills may wait for seconds between two requests on a connection.
  server.keepAliveTimeout = 60_000
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.close()
      server.closeAllConnections()
      await onClose()
    },
  }
}
