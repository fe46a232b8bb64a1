import type { Socket } from "node:net"
import type { Sender } from "./arrivals.ts"
import { CallbackDeadline, type Deadline, type DeadlineQueue } from "./deadlines.ts"
import type { Peer } from "./peers.ts"

/** The two limited times of a connection, each kept for all connections of a door. */
export interface ConnectionTimes {
  /** From the accepted TCP connection to the complete headers of the first request. */
  readonly arrival: DeadlineQueue
  /** From the end of the last call to the next one. */
  readonly idle: DeadlineQueue
}

/** A connection of a door, from its acceptance to its end. */
export class Connection implements Sender {
  /** What was accepted. With TLS the bytes of requests come by another socket on top of it. */
  readonly socket: Socket
  readonly peer: Peer
  arriving = 0
  bytes = 0
  /** The socket by which requests come; undefined until a TLS handshake is over. */
  ready: Socket | undefined
  /** Ends the connection gracefully once it is idle; set by the door. */
  endIdle: () => void
  /** Ends the connection whose first headers are late, with an answer if the door has one; set by the door. */
  endLate: () => void
  readonly #times: ConnectionTimes
  readonly #arrival: Deadline
  readonly #idle: Deadline
  #calls = 0

  /** `onLate` runs when the first headers are late, before the connection ends. */
  constructor(socket: Socket, peer: Peer, times: ConnectionTimes, onLate: (connection: Connection) => void) {
    this.socket = socket
    this.peer = peer
    this.endIdle = () => socket.destroy()
    this.endLate = () => socket.destroy()
    this.#times = times
    this.#arrival = new CallbackDeadline(() => {
      onLate(this)
      this.endLate()
    })
    this.#idle = new CallbackDeadline(() => this.endIdle())
    times.arrival.start(this.#arrival)
  }

  /** The headers of a call are complete. */
  beginCall(): void {
    if (this.#calls++ > 0) return
    this.#times.arrival.stop(this.#arrival)
    this.#times.idle.stop(this.#idle)
  }

  /** A call is over, answered or not. */
  endCall(): void {
    if (--this.#calls === 0 && !this.socket.destroyed) this.#times.idle.start(this.#idle)
  }

  /** Gives the connection the time of arrival again, because a request seems to be on its way. */
  expectCall(): void {
    this.#times.arrival.start(this.#arrival)
  }

  /** Ends both times: nobody can tell when a call begins and ends on this connection. */
  stopTimes(): void {
    this.#times.arrival.stop(this.#arrival)
    this.#times.idle.stop(this.#idle)
  }
}
