import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2"
import type { Server as NetServer, Socket } from "node:net"
import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  type UntypedHandleCall,
} from "@grpc/grpc-js"
import { UnreadAnswers } from "../bounds/arrivals.ts"
import { type Call, mostBytesOf } from "../calls.ts"
import { Callers } from "../sockets/callers.ts"
import type { Connection } from "../sockets/connection.ts"
import { LINGER_MS } from "../sockets/connections.ts"
import type { DoorBounds, DoorListeners, DoorServer } from "../sockets/door.ts"
import type { Tls } from "../sockets/tls.ts"
import { Answering } from "./answering.ts"
import { createGrpcListener } from "./grpc-listener.ts"
import { Keepalive, keepaliveTimes } from "./keepalive.ts"
import { LibraryArrivals } from "./library-arrivals.ts"
import { LibraryCall } from "./library-call.ts"
import { OpenStreams } from "./open-streams.ts"
import { isPlain, PlainCall } from "./plain-call.ts"
import { renewStreams } from "./renewed-streams.ts"
import { offerStreams, sessionOf } from "./sessions.ts"
import { WastedBytes } from "./wasted-bytes.ts"

type LibraryAsked = ServerUnaryCall<Uint8Array, Uint8Array>

/**
 * Megabytes that Node may buffer for one connection, including frames that are not responses. UnreadAnswers stops
 * responses before they reach this limit.
 */
const MOST_UNREAD_MB = 128

/** Options of a gRPC server. */
export interface GrpcDoorOptions {
  readonly bounds: DoorBounds
  readonly listeners: DoorListeners
  readonly tls?: Tls | undefined
  /** Whether the service responds to plain calls itself instead of using grpc-js. Default true. */
  readonly plainCalls?: boolean | undefined
  /** Adds more services to the server. */
  readonly addTo?: ((server: Server) => void) | undefined
}

export function createGrpcDoor(calls: readonly Call[], options: GrpcDoorOptions): DoorServer {
  const { bounds, listeners, tls, plainCalls = true } = options
  const { maxMessageBytes, maxInFlight, arrivalMs } = bounds
  const callers = new Callers(tls !== undefined, bounds, listeners)
  const { connections, arrivals, inFlight } = callers
  const longest = Math.max(...calls.map((call) => mostBytesOf(call, maxMessageBytes)))
  const libraryArrivals = new LibraryArrivals(arrivals, longest)
  const openStreams = new OpenStreams(inFlight, arrivalMs)
  const answering = new Answering(listeners)
  const keepalive = new Keepalive(keepaliveTimes(arrivalMs))
  const wastedBytes = new WastedBytes()
  const server = new Server({
    interceptors: [libraryArrivals.interceptor],
    "grpc.max_receive_message_length": longest,
    "grpc.enable_channelz": 0,
    // Streams per connection. The number is twice the limit, because a stream stays open if grpc-js ends it before
    // its request is complete. Such a stream closes only when its client ends it or disconnects.
    "grpc.max_concurrent_streams": 2 * maxInFlight,
    "grpc-node.max_session_memory": MOST_UNREAD_MB,
  })
  for (const call of calls) {
    const handle: UntypedHandleCall = (asked: LibraryAsked, done: sendUnaryData<Uint8Array>) =>
      answering.answer(call, new LibraryCall(asked, done, inFlight), mostBytesOf(call, maxMessageBytes))
    server.addService({ [call.path]: definitionOf(call) }, { [call.path]: handle })
  }
  options.addTo?.(server)
  // The credentials are insecure because the listener already terminates TLS.
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure())
  const callOf = new Map(calls.map((call) => [call.path, call]))
  const plain = { arrivals, inFlight, answering, maxMessageBytes }
  const takeFrom =
    (connection: Connection) =>
    (stream: ServerHttp2Stream, headers: IncomingHttpHeaders): boolean => {
      const call = callOf.get(headers[":path"] as string)
      const open = openStreams.follow(stream, headers, connection, call !== undefined)
      if (open === undefined) return true
      if (!plainCalls || call === undefined || !isPlain(headers)) {
        libraryArrivals.follow(stream, headers, connection, call, maxMessageBytes, open)
        return false
      }
      new PlainCall(stream, headers, call, connection, plain, open)
      return true
    }
  const begin = (socket: Socket): void => {
    injector.injectConnection(socket)
    const connection = connections.of(socket)
    const session = sessionOf(socket)
    if (session === undefined || connection === undefined) {
      connection?.stopTimes()
      return
    }
    connection.endAbuse = () => {
      if (session.destroyed) return
      session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM)
      endSession(() => session.destroy(), socket)
    }
    connection.unread = new UnreadAnswers(connection, connection.socket, arrivals, connection.endAbuse)
    connection.endIdle = () => endSession(() => session.close(), socket)
    if (!offerStreams(session, takeFrom(connection))) connection.stopTimes()
    keepalive.follow(session)
    wastedBytes.follow(connection)
    renewStreams(session)
  }
  const createListener = (): NetServer => {
    const listener = createGrpcListener(tls, begin)
    connections.watch(listener)
    return listener
  }
  return {
    listen: (host, port) => callers.listen(host, port, createListener),
    drain: () =>
      new Promise((resolve) => {
        void callers.endListening()
        connections.endWhenSent()
        server.tryShutdown(() => resolve())
      }),
    close() {
      server.forceShutdown()
      keepalive.close()
      wastedBytes.close()
      openStreams.close()
      callers.end()
    },
  }
}

/** Ends a session. `end` sends GOAWAY, so that the client reconnects. */
function endSession(end: () => void, socket: Socket): void {
  end()
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}

/**
 * Returns the grpc-js definition of a call. Messages are passed through as bytes, because the calls parse and serialize
 * them.
 */
function definitionOf({ path }: Call) {
  const same = (bytes: Buffer): Buffer => bytes
  return {
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
      Buffer.from(buffer, byteOffset, byteLength),
    responseDeserialize: same,
  } as const
}
