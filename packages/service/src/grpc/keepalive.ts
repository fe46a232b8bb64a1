import type { ServerHttp2Session } from "node:http2"
import { CallbackDeadline, DeadlineQueue } from "../deadlines.ts"

/** When sessions are pinged. */
export interface KeepaliveTimes {
  /** Milliseconds from the start of a session, or the last answer to a ping, to the next ping. */
  readonly pingMs: number
  /** Milliseconds that a peer may take to answer a ping. */
  readonly pongMs: number
}

/** A peer may be busy, so it gets 5 s, however short the arrival time is. */
const PONG_MS = 5_000
const MIN_PING_MS = 1_000
const MAX_PING_MS = 30_000

/** Returns the times with which a silent peer is found within the arrival time, if that is at least 6 s. */
export function keepaliveTimes(arrivalMs: number): KeepaliveTimes {
  const pingMs = Math.min(MAX_PING_MS, Math.max(MIN_PING_MS, arrivalMs - PONG_MS))
  return { pingMs, pongMs: PONG_MS }
}

/**
 * Ends HTTP/2 sessions whose peers do not answer pings: peers that have gone without closing the connection, and peers that stop in the
 * middle of a header block, where no other frame is allowed (RFC 9113 section 6.10). The keepalive of @grpc/grpc-js also ends every
 * draining session at its next ping, with the calls that it still has: Node refuses to ping a session after GOAWAY.
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
    // If this process was busy, the answer may have arrived and not been read: it is read before the immediate runs.
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
