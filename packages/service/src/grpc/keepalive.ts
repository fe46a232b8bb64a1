import type { ServerHttp2Session } from "node:http2"
import { CallbackDeadline, DeadlineQueue } from "../bounds/deadlines.ts"

/** The timing of keepalive pings. */
export interface KeepaliveTimes {
  /** Milliseconds from the start of a session, or from the last answered ping, to the next ping. */
  readonly pingMs: number
  /** Milliseconds that a peer may take to respond to a ping. */
  readonly pongMs: number
}

/** A busy peer has 5 s to respond, even if requests must arrive in less time. */
const PONG_MS = 5_000
const MIN_PING_MS = 1_000
const MAX_PING_MS = 30_000

/** Returns the timing of pings, which detects a silent peer within `arrivalMs` if `arrivalMs` is at least 6 s. */
export function keepaliveTimes(arrivalMs: number): KeepaliveTimes {
  const pingMs = Math.min(MAX_PING_MS, Math.max(MIN_PING_MS, arrivalMs - PONG_MS))
  return { pingMs, pongMs: PONG_MS }
}

/**
 * Ends HTTP/2 sessions whose peers do not respond to pings. Such a peer has disappeared without closing the
 * connection, or has stopped inside a header block, where no other frame is allowed (RFC 9113 section 6.10).
 *
 * The keepalive of grpc-js is not used, because it ends draining sessions that have calls in flight. Node refuses to
 * ping a session after GOAWAY, so every draining session would end at its next ping.
 */
export class Keepalive {
  readonly #pings: DeadlineQueue
  readonly #pongs: DeadlineQueue

  constructor({ pingMs, pongMs }: KeepaliveTimes) {
    this.#pings = new DeadlineQueue(pingMs)
    this.#pongs = new DeadlineQueue(pongMs)
  }

  /** Pings a session until it drains or ends. */
  follow(session: ServerHttp2Session): void {
    let isAwaited = false
    const end = (): void => {
      if (isAwaited) session.destroy()
    }
    // If this process was busy, the response to the ping may have arrived but not been read. Such a response is read
    // before the immediate runs.
    const pong = new CallbackDeadline(() => void setImmediate(end))
    const answered = (): void => {
      isAwaited = false
      this.#pongs.stop(pong)
      if (!session.closed && !session.destroyed) this.#pings.start(ping)
    }
    const ping = new CallbackDeadline(() => {
      if (session.closed || session.destroyed) return
      isAwaited = true
      this.#pongs.start(pong)
      session.ping(answered)
    })
    this.#pings.start(ping)
    session.once("close", () => {
      this.#pings.stop(ping)
      this.#pongs.stop(pong)
    })
  }

  /** Stops all pings. */
  close(): void {
    this.#pings.close()
    this.#pongs.close()
  }
}
