import type { Server, Socket } from "node:net"
import type { TLSSocket } from "node:tls"
import { Connection } from "./connection.ts"
import { DeadlineQueue } from "./deadlines.ts"
import type { DoorListeners } from "./door.ts"
import { Peers, peerAddress } from "./peers.ts"

type ConnectionListeners = Pick<
  DoorListeners,
  "onRefusedConnection" | "onLateConnection" | "onFailedHandshake"
>

/** Bounds of the connections of a door. */
export interface ConnectionBounds {
  /** Connections at a time; more are closed at once. Default 10,000. */
  readonly maxConnections?: number | undefined
  /** Connections at a time from one IPv4 address or one IPv6 /64; more are closed at once. Default: a quarter of `maxConnections`. */
  readonly maxConnectionsPerPeer?: number | undefined
  /** Milliseconds from accepting a connection to the complete headers of its first request. */
  readonly arrivalMs: number
  /** Milliseconds after which a connection without calls ends. Default 300,000. */
  readonly idleMs?: number | undefined
}

/** How many connections a door accepts by default. */
const DEFAULT_MAX_CONNECTIONS = 10_000
/** How long a connection without calls lasts by default: longer than the idle timeouts of common load balancers. */
export const DEFAULT_IDLE_MS = 300_000
/** How long a peer may take to close its side after this side has closed. */
export const LINGER_MS = 1_000

/**
 * The connections of a door: how many there are, whose they are, and how long each may take until its first request and between requests.
 * Each costs memory, whether or not anything is asked by it.
 */
export class Connections {
  readonly #isTls: boolean
  readonly #most: number
  readonly #mostPerPeer: number
  readonly #listeners: ConnectionListeners
  readonly #times: { readonly arrival: DeadlineQueue; readonly idle: DeadlineQueue }
  /** The addresses that have connections, or calls in flight. */
  readonly peers: Peers = new Peers()
  /** By the two ends of each, which a TLS socket shares with the socket below it. */
  readonly #accepted = new Map<string, Connection>()
  readonly #ready = new Map<Socket, Connection>()

  constructor(isTls: boolean, bounds: ConnectionBounds, listeners: ConnectionListeners) {
    const { maxConnections = DEFAULT_MAX_CONNECTIONS, arrivalMs, idleMs = DEFAULT_IDLE_MS } = bounds
    this.#isTls = isTls
    this.#most = maxConnections
    this.#mostPerPeer = bounds.maxConnectionsPerPeer ?? Math.ceil(maxConnections / 4)
    this.#listeners = listeners
    this.#times = { arrival: new DeadlineQueue(arrivalMs), idle: new DeadlineQueue(idleMs) }
  }

  /** Bounds the connections of a server, from its first one. */
  watch(server: Server): void {
    // The server's own listener would begin a TLS handshake, or make a parser, for a connection that is refused.
    const accept = server.listeners("connection")
    server.removeAllListeners("connection")
    server.on("connection", (socket: Socket) => {
      const connection = this.#accept(socket)
      if (connection === undefined) return
      if (!this.#isTls) this.#add(socket, connection)
      for (const each of accept) Reflect.apply(each, server, [socket])
    })
    if (!this.#isTls) return
    server.prependListener("secureConnection", (socket: TLSSocket) => {
      const connection = this.#accepted.get(endsOf(socket))
      // The peer has gone meanwhile.
      if (connection === undefined) socket.destroy()
      else this.#add(socket, connection)
    })
    server.on("tlsClientError", (error: NodeJS.ErrnoException, socket: TLSSocket) => {
      const reason = whyNoTls(error, socket)
      if (reason !== undefined) this.#listeners.onFailedHandshake(reason, socket.remoteAddress)
      // Node leaves the socket open, except in its own server for HTTPS.
      socket.destroy()
    })
  }

  /** The connection of a socket by which requests come; undefined once it has closed. */
  of(socket: Socket): Connection | undefined {
    return this.#ready.get(socket)
  }

  /** Ends connections that have not sent anything, such as a load balancer keeps ready: nobody waits for an answer by them. */
  endSilent(): void {
    for (const { socket } of this.#accepted.values()) if (socket.bytesRead === 0) socket.destroy()
  }

  /** Ends those that are not to be kept, except those that are still sending an answer. */
  endUnless(isKept: (socket: Socket) => boolean): void {
    for (const socket of this.#ready.keys()) {
      if (!socket.writableEnded && !isKept(socket)) socket.destroy()
    }
  }

  /** Ends each when everything has been sent by it, without waiting long for its peer, which may have gone. */
  endWhenSent(): void {
    for (const socket of this.#ready.keys()) {
      socket.once("finish", () => setTimeout(() => socket.destroy(), LINGER_MS).unref())
    }
  }

  /** Ends all of them. */
  end(): void {
    for (const { socket } of this.#accepted.values()) socket.destroy()
    this.#times.arrival.close()
    this.#times.idle.close()
  }

  /** Undefined if the connection was one too many, and has been closed. */
  #accept(socket: Socket): Connection | undefined {
    const peer = this.peers.of(peerAddress(socket))
    const isFull = this.#accepted.size >= this.#most
    if (isFull || peer.connections >= this.#mostPerPeer) {
      this.peers.forgetIfGone(peer)
      socket.destroy()
      this.#listeners.onRefusedConnection(isFull ? "all" : "peer", peer.address)
      return undefined
    }
    const connection = new Connection(socket, peer, this.#times, (late) => this.#onLate(late))
    const ends = endsOf(socket)
    this.#accepted.set(ends, connection)
    peer.connections++
    socket.once("close", () => {
      connection.stopTimes()
      this.#accepted.delete(ends)
      peer.connections--
      this.peers.forgetIfGone(peer)
    })
    return connection
  }

  #add(socket: Socket, connection: Connection): void {
    connection.ready = socket
    this.#ready.set(socket, connection)
    socket.once("close", () => this.#ready.delete(socket))
  }

  #onLate({ socket, ready, peer }: Connection): void {
    const isHandshake = this.#isTls && ready === undefined && socket.bytesRead > 0
    if (isHandshake) this.#listeners.onFailedHandshake(HANDSHAKE_TIMEOUT, peer.address)
    else this.#listeners.onLateConnection(peer.address)
  }
}

/** What Node calls a handshake that takes too long. */
const HANDSHAKE_TIMEOUT = "ERR_TLS_HANDSHAKE_TIMEOUT"

/** What no two open connections of a door have in common. */
function endsOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`
}

/**
 * Why there was no handshake. Undefined if the peer has only gone, or said nothing, as load balancers do that look whether a port is
 * open.
 */
function whyNoTls({ code }: NodeJS.ErrnoException, { authorizationError }: TLSSocket): string | undefined {
  // For a refused certificate the error only says that the connection has ended. The reason is typed as an Error, and is a code.
  if (authorizationError) return String(authorizationError)
  return code?.startsWith("ERR_SSL_") || code === HANDSHAKE_TIMEOUT ? code : undefined
}
