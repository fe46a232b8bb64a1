import type { IncomingMessage } from "node:http"
import type { FastifyRequest } from "fastify"
import type { Arrival, Arrivals } from "../bounds/arrivals.ts"
import { PartialMessage } from "../bounds/partial-message.ts"
import type { StatusError } from "../status-error.ts"

/** A callback that receives a body, or the error that occurred. Fastify responds to an error with its `statusCode`. */
type OnBody = (error: Error | undefined, body: Buffer) => void

const NOTHING = Buffer.alloc(0)

/** Whether a body is JSON. A body of any other type is a binary message. */
export function isJson({ headers }: FastifyRequest): boolean {
  return /^application\/json\b/i.test(String(headers["content-type"]))
}

/**
 * Reads a body of at most `maxBytes`, and counts its bytes until it is complete. `scan` is called with the bytes
 * received so far, and may throw StatusError. `done` is not called if the arrival ends first.
 */
export function readBody(
  payload: IncomingMessage,
  maxBytes: number,
  arrivals: Arrivals,
  arrival: Arrival,
  scan: ((body: Buffer) => void) | undefined,
  done: OnBody,
): void {
  const length = Number(payload.headers["content-length"] ?? 0)
  if (length > maxBytes) {
    done(tooLong(maxBytes), NOTHING)
    return
  }
  const body = new PartialMessage()
  // Keep the listeners until the request is garbage-collected, because removing them would cost each request 2 % of
  // its time.
  let isOver = false
  const stop = (): void => {
    isOver = true
    body.clear()
  }
  let received = 0
  let refusal: Error | undefined
  const keep = (piece: Buffer): number => {
    // Reserve the announced length immediately, because growing step by step would leave smaller buffers behind as
    // garbage.
    const reserved = body.length === 0 && piece.length < length ? body.reserve(length) : 0
    return reserved + body.add(piece)
  }
  const read = (piece: Buffer): void => {
    // Count discarded pieces too, because thousands may arrive before the response closes the connection.
    arrival.sender.received(piece.length)
    if (isOver) return
    received += piece.length
    if (!arrivals.hold(arrival, refusal === undefined ? keep(piece) : 0)) {
      stop()
    } else if (received > maxBytes) {
      stop()
      payload.resume()
      done(refusal ?? tooLong(maxBytes), NOTHING)
    } else if (scan !== undefined && refusal === undefined) {
      try {
        scan(body.bytes)
      } catch (error) {
        // Discard the rest of the body, and respond when it has arrived. Otherwise the client could not read the
        // response.
        refusal = error as StatusError
        body.clear()
      }
    }
  }
  const end = (): void => {
    if (isOver) return
    isOver = true
    done(refusal, body.bytes)
  }
  const fail = (error: Error): void => {
    if (isOver) return
    stop()
    done(Object.assign(error, { statusCode: 400 }), NOTHING)
  }
  payload.on("data", read).on("end", end).on("error", fail).on("close", stop)
}

function tooLong(maxBytes: number): Error {
  return Object.assign(new Error(`The body is too long; at most ${maxBytes} bytes are accepted.`), {
    statusCode: 413,
  })
}
