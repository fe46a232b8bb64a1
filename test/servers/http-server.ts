import { once } from "node:events"
import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"

/** A test's HTTP server on this machine. */
export interface HttpServer {
  /** "http://127.0.0.1:1234" */
  readonly url: string
  /** Stops the server and ends its connections. */
  close(): Promise<void>
}

/** Starts a server that responds with this listener. `port` defaults to a free one. */
export async function startHttpServer(listener: RequestListener, port = 0): Promise<HttpServer> {
  const server = createServer(listener).listen(port, "127.0.0.1")
  await once(server, "listening")
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
