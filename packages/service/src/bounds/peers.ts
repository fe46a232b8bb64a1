import type { Socket } from "node:net"
import { addressGroup } from "@sluice/core"
import type { PeerPace } from "./pacing.ts"

/** What one peer or one service currently uses on a server. */
export interface Usage {
  /** Single calls. */
  calls: number
  /** Requests in batches. */
  batched: number
  /** Requests of single calls or batches that a rule holds until they fit the limit. */
  held: number
  /** HTTP/2 streams that have not closed. */
  streams: number
  /** Bytes of memory that the messages of calls and batches take. */
  memory: number
  /** Bytes of memory that the messages of held requests take. */
  heldMemory: number
}

/** The usage of one IPv4 address, or one IPv6 /64, at a server. */
export interface Peer extends Usage {
  /** An address or a network, such as "192.0.2.7" or "2001:db8:1:2::/64", or "unknown". */
  readonly address: string
  connections: number
  /** The connections of the peer, and the work that they cause. */
  pace?: PeerPace
  /** Requests that have begun to arrive but are not complete. */
  arriving: number
  /** Bytes of the arriving requests. */
  bytes: number
}

/** Returns a usage with nothing in flight. */
export function noUsage(): Usage {
  return { calls: 0, batched: 0, held: 0, streams: 0, memory: 0, heldMemory: 0 }
}

/** Creates a peer without connections or calls. */
export function newPeer(address: string): Peer {
  return { address, connections: 0, arriving: 0, bytes: 0, ...noUsage() }
}

/** The peers that have connections or calls in flight at a server. */
export class Peers {
  readonly #byAddress = new Map<string, Peer>()

  /**
   * Returns the peer of an address. All addresses of an IPv6 /64 are one peer, because a subscriber is assigned a
   * whole /64 or more.
   */
  of(address: string): Peer {
    const group = addressGroup(address) ?? address
    let peer = this.#byAddress.get(group)
    if (peer === undefined) {
      peer = newPeer(group)
      this.#byAddress.set(group, peer)
    }
    return peer
  }

  /** Removes a peer that has no connections and no calls in flight. */
  forgetIfGone(peer: Peer): void {
    // Fast path: after nearly every call, the peer is still connected.
    if (peer.connections > 0) return
    const { address, calls, batched, held, streams, memory, heldMemory } = peer
    if (calls + batched + held + streams + memory + heldMemory > 0) return
    // The map may contain a newer peer, because the address may have connected again after this peer was removed.
    if (this.#byAddress.get(address) === peer) this.#byAddress.delete(address)
  }
}

/**
 * Returns the remote address of a socket, or "unknown" once the peer has disconnected. An IPv4 address mapped into IPv6
 * is returned as IPv4.
 */
export function peerAddress({ remoteAddress = "unknown" }: Pick<Socket, "remoteAddress">): string {
  return remoteAddress.startsWith("::ffff:") && remoteAddress.includes(".")
    ? remoteAddress.slice("::ffff:".length)
    : remoteAddress
}

/** Returns the address of a caller without its port, which differs for each connection. */
export function addressOf(peer: string): string {
  return peerAddress({ remoteAddress: peer.replace(/:\d+$/, "") })
}
