import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2"
import type { UnreadAnswers } from "../bounds/arrivals.ts"
import { Deadline, DeadlineQueue } from "../bounds/deadlines.ts"
import type { InFlight } from "../bounds/in-flight.ts"
import type { Connection } from "../sockets/connection.ts"
import { Code, StatusError } from "../status-error.ts"
import { pushbackHeaders } from "../wire/status-message.ts"

/**
 * Maximum bytes of the headers of a call, as in Node's HTTP/1 parser. One byte on the wire may refer to thousands of
 * bytes of headers.
 */
const MOST_HEADER_BYTES = 16_384
/** Number of calls with larger headers that a connection may begin before it is closed. */
const MOST_LARGE_HEADERS = 8
/** Bytes that a header field counts in addition to its name and value. */
const FIELD_BYTES = 32
const TOO_LARGE = `The headers of the call have more than ${MOST_HEADER_BYTES} bytes.`

/**
 * The open streams of a server. A stream takes memory until its client has read the response. A client that never
 * opens its flow-control window never reads the response.
 */
export class OpenStreams {
  readonly #inFlight: InFlight
  readonly #deadlines: DeadlineQueue

  /** A client has between `answerMs` and twice that time to read a response. */
  constructor(inFlight: InFlight, answerMs: number) {
    this.#inFlight = inFlight
    this.#deadlines = new DeadlineQueue(answerMs)
  }

  /**
   * Counts a stream until it closes. Refuses the stream and returns undefined if its headers are too large, or if its
   * peer has too many streams or unread responses.
   */
  follow(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    connection: Connection,
    isUnary: boolean,
  ): OpenStream | undefined {
    const { peer } = connection
    const headerBytes = bytesOf(headers)
    connection.beginCall(headerBytes)
    if (connection.unread?.refuses() === true) {
      stream.on("error", () => undefined).on("close", () => connection.endCall())
      stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM)
      return undefined
    }
    try {
      if (headerBytes > MOST_HEADER_BYTES) {
        if (++connection.largeHeaders > MOST_LARGE_HEADERS) connection.endAbuse()
        throw new StatusError(Code.RESOURCE_EXHAUSTED, TOO_LARGE)
      }
      this.#inFlight.enter(peer, "streams", 1)
    } catch (error) {
      stream.on("close", () => connection.endCall())
      refuse(stream, error as StatusError)
      return undefined
    }
    const open = new OpenStream(stream, this.#deadlines, connection.unread)
    if (isUnary) this.#deadlines.start(open)
    // Use one listener for everything, because adding a listener costs more than the work inside it.
    stream.on("close", () => {
      this.#deadlines.stop(open)
      this.#inFlight.leave(peer, "streams", 1)
      connection.endCall()
      open.onClosed()
    })
    return open
  }

  close(): void {
    this.#deadlines.close()
  }
}

/** An open stream, with the deadline for reading its response. */
export class OpenStream extends Deadline {
  /** The call of the stream; its `onClosed` runs when the stream has closed. */
  call: { onClosed(): void } | undefined
  readonly #stream: ServerHttp2Stream
  readonly #deadlines: DeadlineQueue
  readonly #unread: UnreadAnswers | undefined
  #unreadBytes = 0
  #wasAnswered = false

  constructor(stream: ServerHttp2Stream, deadlines: DeadlineQueue, unread: UnreadAnswers | undefined) {
    super()
    this.#unread = unread
    this.#stream = stream
    this.#deadlines = deadlines
  }

  /** Counts the bytes of the response until the stream closes. */
  answered(length: number): void {
    this.#unreadBytes += this.#unread?.add(length) ?? 0
  }

  onClosed(): void {
    if (this.#unreadBytes > 0) this.#unread?.remove(this.#unreadBytes)
    this.call?.onClosed()
  }

  onLate(): void {
    const stream = this.#stream
    if (this.#wasAnswered) {
      stream.close(constants.NGHTTP2_CANCEL)
      return
    }
    // Wait once more, because the response may have only just been sent, or not at all if a rule still holds the
    // call.
    this.#wasAnswered = stream.headersSent
    this.#deadlines.start(this)
  }
}

/** Returns the size of a header list (RFC 9113 section 6.5.2). */
function bytesOf(headers: IncomingHttpHeaders): number {
  let bytes = 0
  for (const name in headers) {
    const value = headers[name] as string | string[]
    bytes += FIELD_BYTES + name.length
    if (typeof value === "string") bytes += value.length
    else for (const each of value) bytes += each.length
  }
  return bytes
}

function refuse(stream: ServerHttp2Stream, error: StatusError): void {
  stream.on("error", () => undefined)
  if (stream.destroyed) return
  stream.respond(
    {
      ":status": 200,
      "content-type": "application/grpc+proto",
      "grpc-status": String(error.code),
      "grpc-message": encodeURI(error.message),
      ...pushbackHeaders(error),
    },
    { endStream: true },
  )
  stream.close(constants.NGHTTP2_NO_ERROR)
}
