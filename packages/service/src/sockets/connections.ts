import type { Server, Socket } from "node:net"
import type { TLSSocket } from "node:tls"
import { DeadlineQueue } from "../bounds/deadlines.ts"
import { Pacing } from "../bounds/pacing.ts"
import { Peers, peerAddress } from "../bounds/peers.ts"
import { Connection } from "./connection.ts"
import type { ConnectionBounds, DoorListeners } from "./door.ts"

/** Default limit for the open connections of a server. */
const DEFAULT_MAX_CONNECTIONS = 10_000
/** Default idle timeout. This timeout is longer than the idle timeouts of common load balancers. */
export const DEFAULT_IDLE_MS = 300_000
/** Milliseconds that a peer may take to close its side after this side has closed. */
export const LINGER_MS = 1_000

/**
 * The connections of a server. Limits the number of connections, in total and for each peer. Also limits the time
 * until the first request and between requests. Each connection costs memory, even if it sends nothing.
 */
export class Connections {
  readonly #isTls: boolean
  readonly #most: number
  readonly #mostPerPeer: number
  readonly #listeners: DoorListeners
  readonly #times: { readonly arrival: DeadlineQueue; readonly idle: DeadlineQueue }
  /** The peers with open connections or calls in flight. */
  readonly peers: Peers = new Peers()
  /**
   * Accepted connections, keyed by both endpoint addresses. A TLS socket has the same addresses as the accepted
   * socket that it wraps.
   */
  readonly #accepted = new Map<string, Connection>()
  readonly #ready = new Map<Socket, Connection>()
  readonly #pacing = new Pacing()

  constructor(isTls: boolean, bounds: ConnectionBounds, listeners: DoorListeners) {
    const { maxConnections = DEFAULT_MAX_CONNECTIONS, arrivalMs, idleMs = DEFAULT_IDLE_MS } = bounds
    this.#isTls = isTls
    this.#most = maxConnections
    this.#mostPerPeer = bounds.maxConnectionsPerPeer ?? Math.ceil(maxConnections / 4)
    this.#listeners = listeners
    this.#times = { arrival: new DeadlineQueue(arrivalMs), idle: new DeadlineQueue(idleMs) }
  }

  /** Applies the bounds to all connections of a server. Call it before the server accepts its first connection. */
  watch(server: Server): void {
    // Run the server's own listeners only for accepted connections, because these listeners would start a TLS
    // handshake or create a parser even for a refused connection.
    const accept = server.listeners("connection")
    server.removeAllListeners("connection")
    server.on("connection", (socket: Socket) => {
      const connection = this.#accept(socket)
      if (connection === undefined) return
      if (!this.#isTls) this.#add(socket, connection)
      for (const each of accept) Reflect.apply(each, server, [socket])
      this.#pacing.add(connection)
    })
    if (!this.#isTls) return
    server.prependListener("secureConnection", (socket: TLSSocket) => {
      const connection = this.#accepted.get(endsOf(socket))
      // If no connection is found, the peer disconnected during the handshake.
      if (connection === undefined) socket.destroy()
      else this.#add(socket, connection)
    })
    server.on("tlsClientError", (error: NodeJS.ErrnoException, socket: TLSSocket) => {
      const reason = whyNoTls(error, socket)
      if (reason !== undefined) this.#listeners.onFailedHandshake?.(reason, socket.remoteAddress)
      // Close the socket here, because Node does so only in its own HTTPS server.
      socket.destroy()
    })
  }

  /** Returns the connection of a socket on which requests arrive, or undefined once it has closed. */
  of(socket: Socket): Connection | undefined {
    return this.#ready.get(socket)
  }

  /**
   * Ends connections that have not sent anything. No such connection waits for a response, but a load balancer may
   * keep it open.
   */
  endSilent(): void {
    for (const { socket } of this.#accepted.values()) if (socket.bytesRead === 0) socket.destroy()
  }

  /** Ends the connections for which `isKept` returns false, except connections that are still sending a response. */
  endUnless(isKept: (socket: Socket) => boolean): void {
    for (const socket of this.#ready.keys()) {
      if (!socket.writableEnded && !isKept(socket)) socket.destroy()
    }
  }

  /**
   * Closes each connection soon after everything has been sent. Does not wait for the peer to close the connection,
   * because the peer may have disappeared.
   */
  endWhenSent(): void {
    for (const socket of this.#ready.keys()) {
      socket.once("finish", () => setTimeout(() => socket.destroy(), LINGER_MS).unref())
    }
  }

  /** Ends all connections. */
  end(): void {
    for (const { socket } of this.#accepted.values()) socket.destroy()
    this.#times.arrival.close()
    this.#times.idle.close()
  }

  /** Returns undefined if a bound is reached and the connection has been closed. */
  #accept(socket: Socket): Connection | undefined {
    const peer = this.peers.of(peerAddress(socket))
    const isFull = this.#accepted.size >= this.#most
    if (isFull || peer.connections >= this.#mostPerPeer) {
      this.peers.forgetIfGone(peer)
      socket.destroy()
      this.#listeners.onRefusedConnection?.(isFull ? "all" : "peer", peer.address)
      return undefined
    }
    const connection = new Connection(socket, peer, this.#times, this.#pacing, (late) => this.#onLate(late))
    const ends = endsOf(socket)
    this.#accepted.set(ends, connection)
    peer.connections++
    socket.once("close", () => {
      connection.stopTimes()
      this.#pacing.remove(connection)
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
    if (isHandshake) this.#listeners.onFailedHandshake?.(HANDSHAKE_TIMEOUT, peer.address)
    else this.#listeners.onLateConnection?.(peer.address)
  }
}

/** Node's error code for a TLS handshake that takes too long. */
const HANDSHAKE_TIMEOUT = "ERR_TLS_HANDSHAKE_TIMEOUT"

/** Returns a key that is unique among the open connections of a server. */
function endsOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`
}

/**
 * Returns the reason why a TLS handshake failed. Returns undefined if the peer disconnected or sent nothing, as load
 * balancers do to check that a port is open.
 */
function whyNoTls({ code }: NodeJS.ErrnoException, { authorizationError }: TLSSocket): string | undefined {
  // If a certificate was refused, `code` only means that the connection has closed. `authorizationError` is typed as
  // an Error but is a code.
  if (authorizationError) return String(authorizationError)
  return code?.startsWith("ERR_SSL_") || code === HANDSHAKE_TIMEOUT ? code : undefined
}
