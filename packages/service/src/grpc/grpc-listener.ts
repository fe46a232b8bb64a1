import { createServer, type Server, type Socket } from "node:net"
import { createServer as createTlsServer } from "node:tls"
import { type Tls, tlsOptions } from "../sockets/tls.ts"

/**
 * Creates a server whose connections use HTTP/2, and passes them to `onSocket`. The server of grpc-js does not expose
 * its connections, so they could not be limited.
 */
export function createGrpcListener(tls: Tls | undefined, onSocket: (socket: Socket) => void): Server {
  // Send small responses immediately, without Nagle's algorithm.
  const options = { noDelay: true }
  if (tls === undefined) return createServer(options, onSocket)
  return createTlsServer({ ...options, ...tlsOptions(tls), ALPNProtocols: ["h2"] }, (socket) => {
    // An aborted connection must not affect other connections.
    socket.on("error", () => undefined)
    onSocket(socket)
  })
}
