import type { Server as NetServer } from "node:net"
import { type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf"
import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerErrorResponse,
  type ServerUnaryCall,
  type UntypedHandleCall,
} from "@grpc/grpc-js"
import type { Call } from "../calls.ts"
import { Connections } from "../connections.ts"
import { type DoorListeners, MOST_CONNECTIONS } from "../door.ts"
import { Code, StatusError, shortened } from "../status-error.ts"
import { statusBytes } from "../status-message.ts"
import type { Tls } from "../tls.ts"
import { Arrivals } from "./arrivals.ts"
import { GrpcContext } from "./grpc-context.ts"
import { createGrpcListener, listenOnEach, portOf } from "./grpc-listener.ts"
import { renewStreams } from "./renewed-streams.ts"

/** Bounds of what callers may send. */
export interface GrpcBounds {
  /** Bytes of a message. */
  readonly maxMessageBytes: number
  /** Calls in flight, and as many of which the request has not come yet; more are refused with RESOURCE_EXHAUSTED. */
  readonly maxInFlight: number
  /** Milliseconds that a request may take to arrive. */
  readonly arrivalMs: number
  /** Connections at a time; more are closed at once. Default 10,000. */
  readonly maxConnections?: number
}

/** The door of gRPC. */
export interface GrpcDoor {
  /** Resolves with the port that it listens on. */
  listen(host: string, port: number): Promise<number>
  /** Takes no new calls, and resolves when those in flight have been answered. */
  drain(): Promise<void>
  /** Ends all connections. */
  close(): void
}

type Message = MessageShape<DescMessage>
/** What came in: a message, or why it is none. */
type Received = Message | StatusError
type Done = (error: ServerErrorResponse | null, value?: Message) => void

/**
 * Megabytes that wait on one connection for a peer that asks on and reads no answers: then its calls are refused, and after a
 * hundred of those in a row it is closed. The pings of keepalive tell who is gone, and not who only does not read.
 */
const MOST_UNREAD_MB = 128

const TOO_MANY = new StatusError(Code.RESOURCE_EXHAUSTED, "Too many calls are in flight; try again later.")

/** `addTo` puts more services on the server. */
export function createGrpcDoor(
  calls: readonly Call[],
  { maxMessageBytes, maxInFlight, arrivalMs, maxConnections = MOST_CONNECTIONS }: GrpcBounds,
  { onFault, onRefusedConnection, onAnswered }: DoorListeners,
  tls?: Tls | undefined,
  addTo: (server: Server) => void = () => undefined,
): GrpcDoor {
  const arrivals = new Arrivals({ mostArriving: maxInFlight, arrivalMs })
  const server = new Server({
    interceptors: [arrivals.interceptor],
    "grpc.max_receive_message_length": maxMessageBytes,
    "grpc.enable_channelz": 0,
    // Of one connection: those that were ended before all of them had come stay open until their client ends them, or goes.
    "grpc.max_concurrent_streams": 2 * maxInFlight,
    "grpc-node.max_session_memory": MOST_UNREAD_MB,
    // A peer that has gone without a word is found out.
    "grpc.keepalive_time_ms": 30_000,
    "grpc.keepalive_timeout_ms": 10_000,
  })
  let inFlight = 0
  const answer = (call: Call, asked: ServerUnaryCall<Received, Message>, done: Done): void => {
    const sinceMs = onAnswered === undefined ? 0 : performance.now()
    let value: Message | Promise<Message> | undefined
    let failure: unknown
    const end = (): void => {
      inFlight--
      const error = value === undefined ? errorResponse(failure, call.path, onFault) : null
      onAnswered?.(call.path, codeOf(asked, error), performance.now() - sinceMs)
      if (error !== null) done(error)
      else done(null, value as Message)
    }
    inFlight++
    try {
      if (asked.request instanceof StatusError) throw asked.request
      if (inFlight > maxInFlight) throw TOO_MANY
      value = call.handle(asked.request, new GrpcContext(asked))
    } catch (error) {
      failure = error
    }
    if (!(value instanceof Promise)) {
      end()
      return
    }
    value.then(
      (later) => {
        value = later
        end()
      },
      (error: unknown) => {
        value = undefined
        failure = error
        end()
      },
    )
  }
  for (const call of calls) {
    const handle: UntypedHandleCall = (asked: ServerUnaryCall<Received, Message>, done: Done) =>
      answer(call, asked, done)
    server.addService({ [call.path]: definitionOf(call) }, { [call.path]: handle })
  }
  addTo(server)
  // TLS has been spoken before.
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure())
  const connections = new Connections(tls !== undefined, maxConnections, onRefusedConnection)
  const createListener = (): NetServer => {
    const listener = createGrpcListener(tls, arrivalMs, (socket) => {
      injector.injectConnection(socket)
      renewStreams(socket)
    })
    connections.watch(listener)
    return listener
  }
  let listeners: readonly NetServer[] = []
  return {
    async listen(host, port) {
      listeners = await listenOnEach(host, port, createListener)
      return portOf(listeners[0] as NetServer)
    },
    drain: () =>
      new Promise((resolve) => {
        for (const listener of listeners) listener.close()
        connections.endWhenSent()
        server.tryShutdown(() => resolve())
      }),
    close() {
      server.forceShutdown()
      connections.end()
      arrivals.close()
    },
  }
}

function definitionOf({ path, input, output, serialize }: Call) {
  return {
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: (message: Message): Buffer => bufferOf(toBinary(input, message)),
    requestDeserialize: (bytes: Buffer): Received => {
      try {
        return fromBinary(input, bytes)
      } catch {
        return new StatusError(Code.INVALID_ARGUMENT, `The message is no ${input.typeName}.`)
      }
    },
    responseSerialize: (message: Message): Buffer => bufferOf(serialize(message)),
    responseDeserialize: (bytes: Buffer): Message => fromBinary(output, bytes),
  } as const
}

/** The same memory as a buffer. */
function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

/** Of the answer that the caller has, which is not ours where it did not wait for it. */
function codeOf(asked: ServerUnaryCall<Received, Message>, error: ServerErrorResponse | null): number {
  if (!asked.cancelled) return error?.code ?? Code.OK
  // A timer may be a millisecond early.
  return Number(asked.getDeadline()) <= Date.now() + 1 ? Code.DEADLINE_EXCEEDED : Code.CANCELLED
}

function errorResponse(
  error: unknown,
  path: string,
  onFault: (error: unknown, path: string) => void,
): ServerErrorResponse {
  if (!(error instanceof StatusError)) {
    onFault(error, path)
    return errorResponse(
      new StatusError(Code.INTERNAL, "An error of the decision service; its log has it."),
      path,
      onFault,
    )
  }
  const metadata = new Metadata()
  const told = shortened(error)
  metadata.set("grpc-status-details-bin", statusBytes(told))
  return { name: told.name, message: told.message, code: told.code, details: told.message, metadata }
}
