import { lookup } from "node:dns/promises"
import { once } from "node:events"
import type { AddressInfo, Server } from "node:net"

/**
 * Error codes for an address that this machine does not have. A host name may resolve to such an address, for example
 * to an IPv6 address on a machine without IPv6.
 */
const NOT_HERE: ReadonlySet<unknown> = new Set(["EADDRNOTAVAIL", "EAFNOSUPPORT"])

/**
 * Listens on every address of a host, with one server for each address and the same port for all. "localhost", for
 * example, may have two addresses.
 *
 * Rejects, and listens on no address, if another program uses one of the addresses. Also rejects if this machine has
 * none of the addresses.
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
      // Stop listening on all addresses, because clients that connect to this address would reach the other program.
      for (const each of servers.splice(0)) each.close()
      throw error
    }
  }
  if (servers.length === 0) throw errors[0]
  return servers
}

/** Returns the port that a server listens on. */
export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

/** An address to listen on. Port 0 means any free port. */
export interface ListenAddress {
  /** A host name or an address. "0.0.0.0" means every IPv4 address of this machine. */
  readonly host: string
  /** Port number from 0 to 65535. */
  readonly port: number
}

/** Returns the address as text: "127.0.0.1:8080", "[::1]:8080". */
export function shownAddress({ host, port }: ListenAddress): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`
}

/**
 * Returns a function that throws an Error for a server that cannot listen. The message is one line with the server, the
 * address and the reason.
 */
export function cannotListen(who: string, address: string): (error: unknown) => never {
  return (error) => {
    const { message } = error as Error
    const why = message.includes("EADDRINUSE") ? "the port is in use" : message
    throw new Error(`${who} cannot listen on ${address}: ${why}`, { cause: error })
  }
}
