import { createServer, type Server, type Socket } from "node:net"
import { createServer as createTlsServer } from "node:tls"
import { type Tls, tlsOptions } from "../tls.ts"

/**
 * A server whose connections speak HTTP/2 to `onSocket`. gRPC's own would not let anybody see its connections, nor bound them.
 */
export function createGrpcListener(tls: Tls | undefined, onSocket: (socket: Socket) => void): Server {
  // Small answers are not to wait for each other.
  const options = { noDelay: true }
  if (tls === undefined) return createServer(options, onSocket)
  return createTlsServer({ ...options, ...tlsOptions(tls), ALPNProtocols: ["h2"] }, (socket) => {
    // Who breaks off hurts nobody else.
    socket.on("error", () => undefined)
    onSocket(socket)
  })
}
