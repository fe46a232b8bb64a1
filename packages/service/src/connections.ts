import type { Server, Socket } from "node:net"
import type { TLSSocket } from "node:tls"
import type { DoorListeners } from "./door.ts"

type ConnectionListeners = Pick<DoorListeners, "onRefusedConnection" | "onFailedHandshake">

/** How long a peer may take to close its side when ours has been closed. */
const LINGER_MS = 1_000

/**
 * The connections of a door. Each of its servers takes no more than a bound: each costs memory, whether anything is asked by it or not. And when it
 * goes down it does not wait for those that have nothing to wait for.
 */
export class Connections {
  readonly #accepted = new Set<Socket>()
  readonly #ready = new Set<Socket>()

  readonly #isTls: boolean
  readonly #most: number
  readonly #listeners: ConnectionListeners

  constructor(isTls: boolean, most: number, listeners: ConnectionListeners) {
    this.#isTls = isTls
    this.#most = most
    this.#listeners = listeners
  }

  /** Bounds and remembers the connections of a server, from its first one. */
  watch(server: Server): void {
    server.maxConnections = this.#most
    server.on("drop", () => this.#listeners.onRefusedConnection())
    server.on("tlsClientError", (error: NodeJS.ErrnoException, socket: TLSSocket) => {
      const reason = whyNoTls(error, socket)
      if (reason !== undefined) this.#listeners.onFailedHandshake(reason, socket.remoteAddress)
    })
    remember(server, "connection", this.#accepted)
    // Over TLS it is another socket on top of the one that was accepted, once both sides have shaken hands.
    remember(server, this.#isTls ? "secureConnection" : "connection", this.#ready)
  }

  /** Ends those by which nothing has come, such as a load balancer keeps ready: nobody waits for an answer by them. */
  endSilent(): void {
    for (const socket of this.#accepted) if (socket.bytesRead === 0) socket.destroy()
  }

  /** Ends those that are not to be kept, but for what is being sent. */
  endUnless(isKept: (socket: Socket) => boolean): void {
    for (const socket of this.#ready) if (!socket.writableEnded && !isKept(socket)) socket.destroy()
  }

  /** Ends each, when all has been sent by it, without waiting long for its peer, which may be gone without a word. */
  endWhenSent(): void {
    for (const socket of this.#ready) {
      socket.once("finish", () => setTimeout(() => socket.destroy(), LINGER_MS).unref())
    }
  }

  /** Ends all of them. */
  end(): void {
    for (const socket of this.#accepted) socket.destroy()
  }
}

function remember(server: Server, event: "connection" | "secureConnection", sockets: Set<Socket>): void {
  server.on(event, (socket: Socket) => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
  })
}

/**
 * Why both sides have not shaken hands. Undefined where the peer has only gone, or said nothing, as load balancers do that look whether a
 * port is open.
 */
function whyNoTls({ code }: NodeJS.ErrnoException, { authorizationError }: TLSSocket): string | undefined {
  // Of a certificate that is refused the error itself says no more than that the connection has ended. It is typed as an Error, and is a code.
  if (authorizationError) return String(authorizationError)
  return code?.startsWith("ERR_SSL_") ? code : undefined
}
