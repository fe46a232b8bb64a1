import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2"
import {
  Metadata,
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  ServerListenerBuilder,
} from "@grpc/grpc-js"
import { Arrival, type Arrivals, type Sender } from "../bounds/arrivals.ts"
import { newPeer } from "../bounds/peers.ts"
import { answerInstead, type Call, mostBytesOf, tooLong } from "../calls.ts"
import { Code, OverloadError, type StatusError } from "../status-error.ts"
import type { OpenStream } from "./open-streams.ts"

/**
 * Overhead in bytes for each piece of a message. The grpc-js library keeps all pieces until the message is complete.
 */
const PIECE_BYTES = 256
/** Maximum factor by which decompression can enlarge a message: the best ratio of deflate. */
const MOST_INFLATION = 1_032

/**
 * Tracks the arrival of calls that grpc-js reads. Received bytes are counted on the HTTP/2 stream, because the
 * library does not count them. For a compressed call, the maximum decompressed size is counted, because the library
 * decompresses a message as soon as it is complete.
 */
export class LibraryArrivals {
  /** An interceptor that ends the arrival of a call when its request is complete. */
  readonly interceptor: ServerInterceptor
  readonly #arrivals: Arrivals
  readonly #mostBytes: number
  /** The arrival of the stream that the library receives next. */
  #next: LibraryArrival | undefined

  /** `mostBytes` is the length of the longest message that grpc-js accepts. */
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
        .withSendMessage((message: Uint8Array, next) => {
          coming.open?.answered(message.length)
          next(message)
        })
        // The library also sends "OK" as text. Omit the text, as plain calls do, to save bytes.
        .withSendStatus((status, next) => next(status.code === Code.OK ? { ...status, details: "" } : status))
      return new ServerInterceptingCall(call, responder.build())
    }
  }

  /**
   * Starts to track a stream before the library receives it. `call` is undefined if the service does not implement
   * the method.
   */
  follow(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    sender: Sender,
    call: Call | undefined,
    maxMessageBytes: number,
    open: OpenStream,
  ): void {
    const mostBytes = call === undefined ? this.#mostBytes : mostBytesOf(call, maxMessageBytes)
    const coming = new LibraryArrival(sender, this.#arrivals, call)
    coming.open = open
    this.#next = coming
    const { "grpc-encoding": encoding = "identity" } = headers
    const inflation = encoding === "identity" ? 1 : MOST_INFLATION
    let come = 0
    let held = 0
    stream.on("data", (piece: Buffer) => {
      sender.received(piece.length)
      come += piece.length
      const bytes = Math.min(come * inflation, Math.max(this.#mostBytes, come))
      if (!coming.arrival.isRunning) return
      const isFirst = come === piece.length && come >= PREFIX_BYTES
      const length = Math.max(come - PREFIX_BYTES, isFirst ? piece.readUInt32BE(1) : 0)
      coming.length = length
      if (length > mostBytes) {
        this.#arrivals.end(coming.arrival)
        coming.endArrival(tooLong(length, mostBytes))
        return
      }
      this.#arrivals.hold(coming.arrival, bytes - held + PIECE_BYTES)
      held = bytes
    })
    // Pause the stream, because a "data" listener makes it flow and the library decides when to read.
    stream.pause()
    stream.on("close", () => this.#arrivals.end(coming.arrival))
    // Close the stream if the library responded before the whole request arrived. Otherwise the stream would stay
    // open until the client ends it.
    stream.on("finish", () => {
      // Do not close the stream after `sendMessage`, because trailers follow the message.
      if (!stream.readableEnded && !coming.isAnswered) stream.close()
    })
    this.#arrivals.begin(coming.arrival)
  }
}

/** Number of bytes before a message, which contain a compression flag and the length of the message. */
const PREFIX_BYTES = 5

/** The sender of all calls if Node's HTTP/2 sessions cannot be found. */
const UNKNOWN: Sender = { peer: newPeer("unknown"), arriving: 0, bytes: 0, received() {} }

class LibraryArrival {
  readonly arrival: Arrival
  /** Known length of the message in bytes: the announced length, or the bytes received so far if there are more. */
  length = 0
  call: ServerInterceptingCallInterface | undefined
  /** The stream of the call. Undefined if Node's HTTP/2 sessions cannot be found. */
  open: OpenStream | undefined
  isAnswered = false
  /** The error that ends the call. Set before `call` if the arrival ends before the library receives the call. */
  error: StatusError | undefined

  readonly #called: Call | undefined

  constructor(sender: Sender, arrivals: Arrivals, called?: Call) {
    this.arrival = new Arrival(sender, arrivals, this)
    this.#called = called
  }

  endArrival(error: StatusError): void {
    this.error = error
    const metadata = new Metadata()
    const { call } = this
    const instead = this.#called && answerInstead(this.#called, this.length, error)
    this.isAnswered = instead !== undefined
    if (instead !== undefined) {
      call?.sendMetadata(metadata)
      call?.sendMessage(instead, () => undefined)
      // Send the status immediately. Otherwise the library sends its own error when it reads the length of the
      // message.
      call?.sendStatus({ code: Code.OK, details: "", metadata })
      return
    }
    if (error instanceof OverloadError) metadata.set("grpc-retry-pushback-ms", String(error.retryAfterMs))
    call?.sendStatus({ code: error.code, details: error.message, metadata })
  }
}
