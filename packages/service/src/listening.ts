import { lookup } from "node:dns/promises"
import { once } from "node:events"
import type { AddressInfo, Server } from "node:net"

/** What is said of an address that this machine has not: a name may be for one, as of IPv6 where there is none. */
const NOT_HERE: ReadonlySet<unknown> = new Set(["EADDRNOTAVAIL", "EAFNOSUPPORT"])

/**
 * Listens on every address of a host, such as both that "localhost" may have, each by a server of its own and on the same port. Rejects,
 * and listens on none, where another program has one of them, and where the machine has none of them.
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
      if (NOT_HERE.has((error as NodeJS.ErrnoException).code)) continue
      // Who comes by that address would be answered by the other program.
      for (const each of servers.splice(0)) each.close()
      throw error
    }
  }
  if (servers.length === 0) throw errors[0]
  return servers
}

/** The port that a server listens on. */
export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}
