import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { createServer as createTlsServer } from "node:https"
import type { Socket } from "node:net"
import { UnreadAnswers } from "../bounds/arrivals.ts"
import type { Callers } from "../sockets/callers.ts"
import { DEFAULT_IDLE_MS } from "../sockets/connections.ts"
import type { DoorBounds } from "../sockets/door.ts"
import { type Tls, tlsOptions } from "../sockets/tls.ts"

/**
 * Creates a Node server with bounded connections. `onClientError` is called if a connection sends data that is not
 * HTTP, or if a request takes too long.
 */
export function createHttpListener(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  onClientError: (error: Error, socket: Socket) => void,
  { connections, arrivals }: Callers,
  { arrivalMs, idleMs = DEFAULT_IDLE_MS }: DoorBounds,
  tls: Tls | undefined,
): Server {
  const options = {
    keepAliveTimeout: idleMs,
    requestTimeout: arrivalMs,
    headersTimeout: arrivalMs,
    // Interval at which Node checks for requests that take too long.
    connectionsCheckingInterval: Math.ceil(arrivalMs / 10),
  }
  const listener =
    tls === undefined
      ? createServer(options, answer)
      : createTlsServer({ ...options, ...tlsOptions(tls) }, answer)
  listener.on("clientError", (error, socket) => onClientError(error, socket as Socket))
  connections.watch(listener)
  listener.on(tls === undefined ? "connection" : "secureConnection", (socket: Socket) => {
    const connection = connections.of(socket)
    if (connection === undefined) return
    connection.unread = new UnreadAnswers(connection, connection.socket, arrivals, () => socket.destroy())
    connection.endLate = () => void listener.emit("clientError", requestTimeout(), socket)
    // Node closes idle connections itself, unless an empty line from the client has stopped Node's timer.
    connection.endIdle = () => connection.expectCall()
  })
  return listener
}

/** Creates the error that Node emits for a request that takes too long. Such a request is answered with 408. */
function requestTimeout(): Error {
  return Object.assign(new Error("Request timeout"), { code: "ERR_HTTP_REQUEST_TIMEOUT" })
}
