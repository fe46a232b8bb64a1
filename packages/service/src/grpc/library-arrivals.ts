import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2"
import {
  Metadata,
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  ServerListenerBuilder,
} from "@grpc/grpc-js"
import { Arrival, type Arrivals, type Sender } from "../arrivals.ts"
import { newPeer } from "../peers.ts"
import { Code, OverloadError, StatusError } from "../status-error.ts"

/** Bytes of memory that a piece of a message takes beside its own: @grpc/grpc-js keeps each until all have come. */
const PIECE_BYTES = 256
/** How many times as long a compressed message can be when it is read: deflate's best. */
const MOST_INFLATION = 1_032

/**
 * The arrival of calls that @grpc/grpc-js reads. It keeps no count of the bytes that have come, so they are counted on the HTTP/2 stream:
 * of a compressed call as many as it may become, since it is decompressed as soon as its message is there.
 */
export class LibraryArrivals {
  /** Ends the arrival of a call when its request has come. */
  readonly interceptor: ServerInterceptor
  readonly #arrivals: Arrivals
  readonly #mostBytes: number
  /** The arrival of the stream that the library is about to be given. */
  #next: LibraryArrival | undefined

  /** `mostBytes` is the longest message that @grpc/grpc-js accepts. */
  constructor(arrivals: Arrivals, mostBytes: number) {
    this.#arrivals = arrivals
    this.#mostBytes = mostBytes
    this.interceptor = (_method, call) => {
      const coming = this.#next ?? new LibraryArrival(UNKNOWN, arrivals)
      this.#next = undefined
      coming.call = call
      if (!coming.arrival.isRunning) arrivals.begin(coming.arrival)
      const leave = (): void => arrivals.end(coming.arrival)
      const listener = new ServerListenerBuilder()
        .withOnReceiveHalfClose((next) => {
          leave()
          next()
        })
        .withOnCancel(leave)
        .build()
      const responder = new ResponderBuilder()
        .withStart((next) => {
          if (coming.error === undefined) next(listener)
          else coming.endArrival(coming.error)
        })
        // The library says "OK" in words, too. Plain calls spare those bytes.
        .withSendStatus((status, next) => next(status.code === Code.OK ? { ...status, details: "" } : status))
      return new ServerInterceptingCall(call, responder.build())
    }
  }

  /** Follows a stream before the library is given it. `mostBytes` bounds the message, if its method does. */
  follow(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    sender: Sender,
    mostBytes: number = this.#mostBytes,
  ): void {
    const coming = new LibraryArrival(sender, this.#arrivals)
    this.#next = coming
    const { "grpc-encoding": encoding = "identity" } = headers
    const inflation = encoding === "identity" ? 1 : MOST_INFLATION
    let come = 0
    let held = 0
    stream.on("data", (piece: Buffer) => {
      come += piece.length
      const bytes = Math.min(come * inflation, Math.max(this.#mostBytes, come))
      if (!coming.arrival.isRunning) return
      const isFirst = come === piece.length && come >= PREFIX_BYTES
      const length = Math.max(come - PREFIX_BYTES, isFirst ? piece.readUInt32BE(1) : 0)
      if (length > mostBytes) {
        this.#arrivals.end(coming.arrival)
        const details = `The message has ${length} bytes; ${mostBytes} are accepted.`
        coming.endArrival(new StatusError(Code.RESOURCE_EXHAUSTED, details))
        return
      }
      this.#arrivals.hold(coming.arrival, bytes - held + PIECE_BYTES)
      held = bytes
    })
    // Whatever listens to data makes a stream flow, and the library decides when.
    stream.pause()
    stream.on("close", () => this.#arrivals.end(coming.arrival))
    // The library leaves a call open that it has answered before all of it had come: its stream would stay until its client ends it.
    stream.on("finish", () => {
      if (!stream.readableEnded) stream.close()
    })
    this.#arrivals.begin(coming.arrival)
  }
}

/** Before a message: whether it is compressed, and its length. */
const PREFIX_BYTES = 5

/** Stands for every connection, if Node's sessions cannot be found. */
const UNKNOWN: Sender = { peer: newPeer("unknown"), arriving: 0, bytes: 0 }

class LibraryArrival {
  readonly arrival: Arrival
  call: ServerInterceptingCallInterface | undefined
  /** What the call ends with, if that is known before the library has it. */
  error: StatusError | undefined

  constructor(sender: Sender, arrivals: Arrivals) {
    this.arrival = new Arrival(sender, arrivals, this)
  }

  endArrival(error: StatusError): void {
    this.error = error
    const metadata = new Metadata()
    if (error instanceof OverloadError) metadata.set("grpc-retry-pushback-ms", String(error.retryAfterMs))
    this.call?.sendStatus({ code: error.code, details: error.message, metadata })
  }
}
