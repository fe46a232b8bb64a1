import type { IncomingMessage } from "node:http"
import type { FastifyRequest } from "fastify"
import type { Arrival, Arrivals } from "../arrivals.ts"
import { PartialMessage } from "../partial-message.ts"

/** An error that Fastify answers with its status. */
interface BodyError extends Error {
  readonly statusCode: number
}

/** A callback that receives a body, or the error that occurred. */
type OnBody = (error: BodyError | undefined, body: Buffer) => void

const NOTHING = Buffer.alloc(0)

/** Whether a body is JSON. Any other body is a binary message. */
export function isJson({ headers }: FastifyRequest): boolean {
  return /^application\/json\b/i.test(String(headers["content-type"]))
}

/**
 * Reads a body of at most `maxBytes`, and counts its bytes until it is complete. `done` is not called if the arrival
 * ends first.
 */
export function readBody(
  payload: IncomingMessage,
  maxBytes: number,
  arrivals: Arrivals,
  arrival: Arrival,
  done: OnBody,
): void {
  const length = Number(payload.headers["content-length"] ?? 0)
  if (length > maxBytes) {
    done(tooLong(maxBytes), NOTHING)
    return
  }
  const body = new PartialMessage()
  // Keep the listeners until the request is collected. Removing them would cost each request 2 % of its time.
  let isOver = false
  const stop = (): void => {
    isOver = true
    body.clear()
  }
  const read = (piece: Buffer): void => {
    if (isOver) return
    // Reserve the announced length at once. Growing step by step would leave smaller buffers behind as garbage.
    const reserved = body.length === 0 && piece.length < length ? body.reserve(length) : 0
    if (!arrivals.hold(arrival, reserved + body.add(piece))) {
      stop()
      // Stop reading: the connection ends with the answer, so more data would only fill the memory.
      payload.pause()
    } else if (body.length > maxBytes) {
      stop()
      payload.resume()
      done(tooLong(maxBytes), NOTHING)
    }
  }
  const end = (): void => {
    if (isOver) return
    isOver = true
    done(undefined, body.bytes)
  }
  const fail = (error: Error): void => {
    if (isOver) return
    stop()
    done(Object.assign(error, { statusCode: 400 }), NOTHING)
  }
  payload.on("data", read).on("end", end).on("error", fail).on("close", stop)
}

function tooLong(maxBytes: number): BodyError {
  return Object.assign(new Error(`The body is too long; at most ${maxBytes} bytes are accepted.`), {
    statusCode: 413,
  })
}
