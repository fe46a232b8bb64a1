import type { Socket } from "node:net"
import type { Sender, UnreadAnswers } from "../bounds/arrivals.ts"
import { CallbackDeadline, type Deadline, type DeadlineQueue } from "../bounds/deadlines.ts"
import { type PacedConnection, type Pacing, PeerPace } from "../bounds/pacing.ts"
import type { Peer } from "../bounds/peers.ts"

/** The two timeouts of a connection. Each queue serves all connections of a server. */
export interface ConnectionTimes {
  /** From accepting the TCP connection to the complete headers of the first request. */
  readonly arrival: DeadlineQueue
  /** From the end of the last call to the start of the next one. */
  readonly idle: DeadlineQueue
}

/** Bytes of frames that belong to a call, in addition to its headers and its message. */
const FRAMES_BYTES = 256
/** Bytes of headers that take as much time to read as a call of the usual size. */
const BYTES_OF_CALL = 1_024
/** Bytes of a body that take as much time to read as a call of the usual size. */
const BYTES_OF_UNIT = 8_192
/** Bytes that take as much time to read as the overhead of each piece of a body. */
const PIECE_BYTES = 64

/** A connection of a server, from when it is accepted until it closes. */
export class Connection implements Sender, PacedConnection {
  /** The accepted socket. With TLS, requests arrive on another socket, which wraps the accepted socket. */
  readonly socket: Socket
  readonly peer: Peer
  readonly pace: PeerPace
  /** Estimate of the bytes that belong to the peer's calls. The estimate is never too low. */
  usedBytes = 0
  /** Number of calls on this connection whose headers were too large. */
  largeHeaders = 0
  arriving = 0
  bytes = 0
  /** The socket on which requests arrive. Undefined until the TLS handshake is complete. */
  ready: Socket | undefined
  /** The responses that the client has not read. Set by the server before the first call. */
  unread: UnreadAnswers | undefined
  /** Ends the connection gracefully when it is idle. Set by the server. */
  endIdle: () => void
  /** Ends a connection whose first headers are late. An HTTP server first responds with 408. Set by the server. */
  endLate: () => void
  /** Ends the connection of a peer that sends too much refused or useless data. Set by the server. */
  endAbuse: () => void
  readonly #times: ConnectionTimes
  readonly #pacing: Pacing
  readonly #arrival: Deadline
  readonly #idle: Deadline
  #calls = 0

  /** `onLate` runs when the first headers are late, before the connection ends. */
  constructor(
    socket: Socket,
    peer: Peer,
    times: ConnectionTimes,
    pacing: Pacing,
    onLate: (connection: Connection) => void,
  ) {
    this.socket = socket
    this.peer = peer
    this.pace = peer.pace ??= new PeerPace()
    this.#pacing = pacing
    this.endIdle = () => socket.destroy()
    this.endLate = () => socket.destroy()
    this.endAbuse = () => socket.destroy()
    this.#times = times
    this.#arrival = new CallbackDeadline(() => {
      onLate(this)
      this.endLate()
    })
    this.#idle = new CallbackDeadline(() => this.endIdle())
    times.arrival.start(this.#arrival)
  }

  /**
   * Counts a call whose headers have fully arrived. `headerBytes` is at least the size of the headers on the wire.
   * Stops both timeouts if no other call is running.
   */
  beginCall(headerBytes: number): void {
    this.usedBytes += headerBytes + FRAMES_BYTES
    this.#pacing.spend(this.pace, 1 + headerBytes / BYTES_OF_CALL)
    if (this.#calls++ > 0) return
    this.#times.arrival.stop(this.#arrival)
    this.#times.idle.stop(this.#idle)
  }

  received(bytes: number): void {
    this.usedBytes += bytes + PIECE_BYTES
    this.#pacing.spend(this.pace, (bytes + PIECE_BYTES) / BYTES_OF_UNIT)
  }

  /**
   * Stops counting a call that has ended, whether answered or not. Starts the idle timeout if no other call is
   * running.
   */
  endCall(): void {
    if (--this.#calls === 0 && !this.socket.destroyed) this.#times.idle.start(this.#idle)
  }

  /** Restarts the arrival timeout, because a request seems to be on its way. */
  expectCall(): void {
    this.#times.arrival.start(this.#arrival)
  }

  /** Stops both timeouts, because the connection has closed or its calls cannot be observed. */
  stopTimes(): void {
    this.#times.arrival.stop(this.#arrival)
    this.#times.idle.stop(this.#idle)
  }
}
