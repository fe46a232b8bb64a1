import { lookup } from "node:dns/promises"
import { once } from "node:events"
import type { AddressInfo, Server } from "node:net"

/**
 * Listens on every address of a host, such as both that "localhost" may have, each by a server of its own and on the same port. Rejects
 * with the first error where none of them can be listened on.
 */
export async function listenOnEach<Each extends Server>(
  host: string,
  port: number,
  create: () => Each,
): Promise<Each[]> {
  const servers: Each[] = []
  const errors: unknown[] = []
  for (const { address } of await lookup(host, { all: true })) {
    const [first] = servers
    const server = create()
    server.listen(first === undefined ? port : portOf(first), address)
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
