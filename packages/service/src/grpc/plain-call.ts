import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2"
import { Arrival, type Arrivals, type Sender } from "../bounds/arrivals.ts"
import { CallPlaces, type InFlight } from "../bounds/in-flight.ts"
import { PartialMessage } from "../bounds/partial-message.ts"
import { type Asking, answerInstead, bearerToken, type Call, mostBytesOf, tooLong } from "../calls.ts"
import { Code, type StatusError } from "../status-error.ts"
import { pushbackHeaders, statusBytes } from "../wire/status-message.ts"
import type { Answering, AskedCall } from "./answering.ts"
import type { OpenStream } from "./open-streams.ts"
import { timeLeftMs } from "./time-left.ts"

// For the protocol of a plain call on its HTTP/2 stream, see
// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md

/** The dependencies that plain calls share. */
export interface PlainCalls {
  readonly arrivals: Arrivals
  readonly inFlight: InFlight
  readonly answering: Answering
  /** Maximum bytes of a message, unless the call has its own limit. */
  readonly maxMessageBytes: number
}

/** The status of a call that ends without a response. */
interface Ending {
  readonly code: Code
  readonly details: string
}

/** Number of bytes before a message, which contain a compression flag and the length of the message. */
const PREFIX_BYTES = 5
/** The longest delay of a Node timer. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

const HEADERS = { ":status": 200, "content-type": "application/grpc+proto" } as const
const WITH_TRAILERS = { waitForTrailers: true, sendDate: false }
const WITHOUT_MESSAGE = { endStream: true, sendDate: false }
const OK = { "grpc-status": "0" }
const LATE: Ending = { code: Code.DEADLINE_EXCEEDED, details: "Deadline exceeded" }
const LESS_THAN_ONE: Ending = {
  code: Code.UNIMPLEMENTED,
  details: "The request ended before its message arrived.",
}
const MORE_THAN_ONE: Ending = {
  code: Code.UNIMPLEMENTED,
  details: "The call has more than one message; send exactly one.",
}
const COMPRESSED: Ending = {
  code: Code.INTERNAL,
  details: "The message is marked as compressed, but the call has no grpc-encoding.",
}

/**
 * True if PlainCall can read and respond to the call. All other calls, such as compressed calls and calls with
 * invalid headers, are left to grpc-js.
 */
export function isPlain(headers: IncomingHttpHeaders): boolean {
  const { "content-type": type, "grpc-encoding": encoding = "identity", "grpc-timeout": timeout } = headers
  return (
    headers[":method"] === "POST" &&
    (type === "application/grpc" || type === "application/grpc+proto") &&
    encoding === "identity" &&
    (timeout === undefined || timeLeftMs(String(timeout)) !== undefined)
  )
}

/**
 * A call with one message and one response, both uncompressed, on its HTTP/2 stream. Nearly every call has this form.
 * PlainCall takes half the CPU time of grpc-js, which supports calls of any kind (decision 0011).
 */
export class PlainCall implements AskedCall, Asking {
  readonly #stream: ServerHttp2Stream
  readonly #open: OpenStream
  readonly #headers: IncomingHttpHeaders
  readonly #call: Call
  readonly #by: PlainCalls
  readonly #arrival: Arrival
  readonly #message = new PartialMessage()
  readonly reader = "plain"
  readonly places: CallPlaces
  /** Expected bytes, including the prefix. 0 until the length is known. */
  #expected = 0
  #timer: NodeJS.Timeout | undefined
  #isOver = false
  #endedWith: Code | undefined
  #listeners: Set<() => void> | undefined

  /** Starts to read the call, and responds to it when its request has arrived. */
  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    call: Call,
    sender: Sender,
    by: PlainCalls,
    open: OpenStream,
  ) {
    open.call = this
    this.#open = open
    this.#stream = stream
    this.#headers = headers
    this.#call = call
    this.#by = by
    this.#arrival = new Arrival(sender, by.arrivals, this)
    this.places = new CallPlaces(by.inFlight, sender.peer)
    // Ignore errors, because a failed stream also emits "close".
    stream.on("error", () => undefined)
    by.arrivals.begin(this.#arrival)
    if (this.#isOver) return
    this.#startTimer(headers["grpc-timeout"])
    stream.on("data", (chunk: Buffer) => this.#receive(chunk))
    stream.on("end", () => this.#received())
  }

  get request(): Uint8Array {
    return this.#message.bytes.subarray(PREFIX_BYTES)
  }

  get asking(): Asking {
    return this
  }

  get token(): string | undefined {
    return bearerToken(this.#headers.authorization)
  }

  get peer(): string {
    const { remoteAddress, remotePort } = this.#stream.session?.socket ?? {}
    return remoteAddress === undefined ? "unknown" : `${remoteAddress}:${remotePort}`
  }

  /** Whether the caller has disconnected or its deadline has passed. */
  get closed(): boolean {
    return this.#endedWith !== undefined
  }

  get endedWith(): Code | undefined {
    return this.#endedWith
  }

  once(_event: "close", listener: () => void): void {
    this.#listeners ??= new Set()
    this.#listeners.add(listener)
  }

  off(_event: "close", listener: () => void): void {
    this.#listeners?.delete(listener)
  }

  answer(bytes: Uint8Array): void {
    if (!this.#finish()) return
    this.#open.answered(bytes.length)
    // Check again, because counting the response may have closed the connection.
    if (this.#isGone()) return
    const stream = this.#stream
    const message = Buffer.allocUnsafe(PREFIX_BYTES + bytes.length)
    message[0] = 0
    message.writeUInt32BE(bytes.length, 1)
    message.set(bytes, PREFIX_BYTES)
    stream.on("wantTrailers", () => stream.sendTrailers(OK))
    stream.respond(HEADERS, WITH_TRAILERS)
    stream.end(message)
  }

  fail(error: StatusError): void {
    if (!this.#finish()) return
    const details = statusBytes(error).toString("base64")
    this.#send(error.code, error.message, { "grpc-status-details-bin": details, ...pushbackHeaders(error) })
  }

  /** Ends the call when its stream has closed. If the call was not answered, its caller has disconnected. */
  onClosed(): void {
    this.#close(Code.CANCELLED)
  }

  /** Ends the call before its request has arrived. */
  endArrival(error: StatusError): void {
    const instead = answerInstead(this.#call, this.#expected, error)
    if (instead !== undefined) this.#answerEarly(instead)
    else if (this.#close(error.code)) this.#send(error.code, error.message, pushbackHeaders(error))
  }

  /**
   * Responds to a request before it has fully arrived. Discards the rest instead of resetting the stream, because a
   * grpc-js client misses a response that precedes a reset.
   */
  #answerEarly(bytes: Uint8Array): void {
    this.#by.arrivals.end(this.#arrival)
    this.#message.clear()
    this.answer(bytes)
  }

  #sendStatus({ code, details }: Ending): void {
    if (this.#close(code)) this.#send(code, details)
  }

  #startTimer(timeout: string | string[] | undefined): void {
    if (timeout === undefined) return
    const ms = timeLeftMs(String(timeout)) as number
    if (ms <= LONGEST_TIMER_MS) this.#timer = setTimeout(() => this.#sendStatus(LATE), ms)
  }

  #receive(chunk: Buffer): void {
    this.#arrival.sender.received(chunk.length)
    // Read and discard the rest of a call that is over, so that its stream can end and be freed.
    if (this.#isOver) return
    const message = this.#message
    if (!this.#by.arrivals.hold(this.#arrival, message.add(chunk))) return
    if (this.#expected === 0) {
      if (message.length < PREFIX_BYTES) return
      const bytes = message.bytes.readUInt32BE(1)
      const most = mostBytesOf(this.#call, this.#by.maxMessageBytes)
      this.#expected = PREFIX_BYTES + bytes
      if (bytes > most) {
        this.endArrival(tooLong(bytes, most))
        return
      }
      // Reserve the announced length immediately, because growing step by step would leave smaller buffers behind as
      // garbage.
      if (!this.#by.arrivals.hold(this.#arrival, message.reserve(this.#expected))) return
    }
    if (message.length > this.#expected) this.#sendStatus(MORE_THAN_ONE)
  }

  #received(): void {
    if (this.#isOver || this.#isGone()) return
    if (this.#expected === 0 || this.#message.length < this.#expected) {
      this.#sendStatus(LESS_THAN_ONE)
      return
    }
    if (this.#message.bytes[0] !== 0) {
      this.#sendStatus(COMPRESSED)
      return
    }
    this.#by.arrivals.end(this.#arrival)
    this.#by.answering.answer(this.#call, this)
    this.#message.clear()
  }

  #isGone(): boolean {
    return this.#stream.destroyed || this.#stream.closed
  }

  /** Ends a call whose caller no longer waits for a response. Returns false if the call is already over. */
  #close(code: Code): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#endedWith = code
    clearTimeout(this.#timer)
    this.#by.arrivals.end(this.#arrival)
    this.#message.clear()
    if (this.#listeners !== undefined) for (const listener of this.#listeners) listener()
    return true
  }

  /** Ends the call before its response is sent. Returns false if the call is already over or its stream has closed. */
  #finish(): boolean {
    if (this.#isOver || this.#isGone()) return false
    this.#isOver = true
    clearTimeout(this.#timer)
    return true
  }

  #send(code: Code, message: string, more?: Readonly<Record<string, string>>): void {
    if (this.#isGone()) return
    this.#open.answered(0)
    // Check again, because counting the response may have closed the connection.
    if (this.#isGone()) return
    const status = { "grpc-status": String(code), "grpc-message": encodeURI(message), ...more }
    const stream = this.#stream
    stream.respond({ ...HEADERS, ...status }, WITHOUT_MESSAGE)
    // Close the stream if it was answered before its whole request arrived (RFC 9113 section 8.1). Some clients
    // neither end nor reset such a call, so its stream would stay open and prevent the service from shutting down.
    if (!stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR)
    stream.resume()
  }
}
