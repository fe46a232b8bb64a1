import { lookup } from "node:dns/promises"
import { once } from "node:events"
import { type AddressInfo, createServer, type Server, type Socket } from "node:net"
import { createServer as createTlsServer } from "node:tls"
import { type Tls, tlsOptions } from "../tls.ts"

/**
 * A server whose connections speak HTTP/2 to `onSocket`. gRPC's own would not let anybody see its connections, nor bound them.
 */
export function createGrpcListener(
  tls: Tls | undefined,
  handshakeMs: number,
  onSocket: (socket: Socket) => void,
): Server {
  // Small answers are not to wait for each other.
  const options = { noDelay: true }
  if (tls === undefined) return createServer(options, onSocket)
  return createTlsServer({ ...options, ...tlsOptions(tls, handshakeMs), ALPNProtocols: ["h2"] }, (socket) => {
    // Who breaks off hurts nobody else.
    socket.on("error", () => undefined)
    onSocket(socket)
  })
}

/**
 * Listens on every address of a host, such as both that "localhost" may have, each by a server of its own and on the same port. Rejects
 * with the first error where none of them can be listened on.
 */
export async function listenOnEach(host: string, port: number, create: () => Server): Promise<Server[]> {
  const servers: Server[] = []
  const errors: unknown[] = []
  for (const { address } of await lookup(host, { all: true })) {
    const [first] = servers
    const server = create().listen(first === undefined ? port : portOf(first), address)
    try {
      await once(server, "listening")
      servers.push(server)
    } catch (error) {
      errors.push(error)
    }
  }
  if (servers.length === 0) throw errors[0]
  return servers
}

/** The port that a server listens on. */
export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}
