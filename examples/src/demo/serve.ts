import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"
import type { FastifyInstance } from "fastify"

/** A server, which only this machine can reach. */
export interface Served {
  /** Base URL, such as "http://127.0.0.1:40123". */
  readonly url: string
  /** Stops the server immediately, and closes its connections. */
  close(): Promise<void>
}

/**
 * Starts a server for an app, by default on a free port. An Express app and a Koa `callback()` run in a new Node
 * server. A Fastify app brings its own server.
 */
export async function serve(app: RequestListener | FastifyInstance, atPort = 0): Promise<Served> {
  if (typeof app !== "function") {
    const url = await app.listen({ port: atPort, host: "127.0.0.1" })
    return { url, close: () => closed(app) }
  }
  const server = createServer(app)
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(atPort, "127.0.0.1", resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      const ended = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await ended
    },
  }
}

async function closed(app: FastifyInstance): Promise<void> {
  const ended = app.close()
  app.server.closeAllConnections()
  await ended
}
