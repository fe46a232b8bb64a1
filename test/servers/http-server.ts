import { once } from "node:events"
import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"

/** A test's HTTP server, on a free port of this machine. */
export interface HttpServer {
  /** "http://127.0.0.1:1234" */
  readonly url: string
  /** Stops the server and ends its connections. */
  close(): Promise<void>
}

/** Starts a server that responds with this listener. */
export async function startHttpServer(listener: RequestListener): Promise<HttpServer> {
  const server = createServer(listener).listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
