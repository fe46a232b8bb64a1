import { once } from "node:events"
import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"

/** So many requests of a client in so many milliseconds. */
export interface Limit {
  readonly limit: number
  readonly windowMs: number
}

/** What an app is to have. One proxy stands in front of it, which says in `X-Forwarded-For` who asks. */
export interface AppSetup {
  /** All of them hold for every client address. The shorter window comes first. */
  readonly limits: readonly Limit[]
  /** Where counters are; without it they are in the memory of the process. `isUp`: whether it answers now. */
  readonly redis?: { readonly port: number; readonly isUp: boolean }
  /** After which a silent Redis counts as gone, for who has such a deadline. */
  readonly storeTimeoutMs: number
  /** Whether the limits are the app's (the default) or those of its one route. */
  readonly mount?: "app" | "route"
  /** The bound of the memory store, where it has one that can be set. */
  readonly maxKeys?: number
}

/** An app that answers GET and HEAD of "/" with 200 unless its limiter says otherwise. */
export interface RunningApp {
  /** On 127.0.0.1. */
  readonly port: number
  close(): Promise<void>
}

export type StartApp = (setup: AppSetup) => Promise<RunningApp>

/** Serves on a free port; `onClose` lets go of what the app has opened. */
export async function serve(
  listener: RequestListener,
  onClose: () => void | Promise<void>,
): Promise<RunningApp> {
  const server = createServer(listener)
  // Drills wait for seconds between two requests.
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
