import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"
import type { RunningApp } from "./plan.ts"

/** Starts a server on a free port of 127.0.0.1. */
export async function listen(listener: RequestListener): Promise<RunningApp> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
