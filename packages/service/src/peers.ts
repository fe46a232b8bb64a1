import type { Socket } from "node:net"

/** What one peer or one service has in flight at a door. */
export interface Usage {
  /** Single calls. */
  calls: number
  /** Requests in batches. */
  batched: number
  /** Requests that a rule holds until they fit, in single calls or batches. */
  held: number
}

/** Everything that one address has at a door. */
export interface Peer extends Usage {
  readonly address: string
  connections: number
  /** Requests that have begun to arrive. */
  arriving: number
  /** Bytes of these. */
  bytes: number
}

/** A peer that has nothing yet. */
export function newPeer(address: string): Peer {
  return { address, connections: 0, arriving: 0, bytes: 0, calls: 0, batched: 0, held: 0 }
}

/** The addresses that have connections at a door. */
export class Peers {
  readonly #byAddress = new Map<string, Peer>()

  /** The peer of an address, which is forgotten with its last connection and its last call. */
  of(address: string): Peer {
    let peer = this.#byAddress.get(address)
    if (peer === undefined) {
      peer = newPeer(address)
      this.#byAddress.set(address, peer)
    }
    return peer
  }

  /** Forgets a peer that has no connection, and no call that still takes place. */
  forgetIfGone({ address, connections, calls, batched, held }: Peer): void {
    if (connections + calls + batched + held === 0) this.#byAddress.delete(address)
  }
}

/** The address of a socket, an IPv4 one that came over IPv6 as IPv4; "unknown" once the peer has gone. */
export function peerAddress({ remoteAddress = "unknown" }: Pick<Socket, "remoteAddress">): string {
  return remoteAddress.startsWith("::ffff:") && remoteAddress.includes(".")
    ? remoteAddress.slice("::ffff:".length)
    : remoteAddress
}

/** The address of a caller without its port, which differs for each connection. */
export function addressOf(peer: string): string {
  return peerAddress({ remoteAddress: peer.replace(/:\d+$/, "") })
}
