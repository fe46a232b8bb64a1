import type { Socket } from "node:net"
import { Code, OverloadError, StatusError } from "../status-error.ts"
import { Deadline, DeadlineQueue } from "./deadlines.ts"
import type { OverloadListeners } from "./in-flight.ts"
import type { Peer } from "./peers.ts"

/** Default limit for the bytes of unfinished requests at one of the two servers: 64 MiB. */
export const DEFAULT_MAX_UNFINISHED_BYTES = 67_108_864

/**
 * Number of pieces of any size that a request may contain, and the mean size in bytes that further pieces must have.
 * Small pieces are expensive, because a piece of one byte takes as much time as a kilobyte.
 */
const FREE_PIECES = 1_024
const MEAN_PIECE_BYTES = 16

/**
 * Maximum number of excess requests to end in one turn of the event loop. Thousands of requests may begin in one
 * turn, and ending all of them would block the event loop.
 */
const MOST_ENDED_AT_ONCE = 32

/** A connection that sends requests, and counters for the requests that are still arriving on it. */
export interface Sender {
  readonly peer: Peer
  arriving: number
  bytes: number
  /** Counts a piece of a request, even if the piece is discarded. `bytes` is the length of the piece. */
  received(bytes: number): void
}

/** Bounds for requests that have begun to arrive but are not complete. */
export interface ArrivalBounds {
  /** Maximum number of requests that arrive at the same time. */
  readonly mostArriving: number
  /** Maximum number of bytes of all arriving requests. One connection may use a quarter of these bytes. */
  readonly mostBytes: number
  /** Milliseconds that each request may take to arrive. */
  readonly arrivalMs: number
}

/** A request that is arriving. */
export class Arrival extends Deadline {
  readonly sender: Sender
  bytes = 0
  pieces = 0
  /** The number of requests that this arrival counts as: 0 for unread responses. */
  readonly requests: 0 | 1
  readonly #end: { endArrival(error: StatusError): void }
  readonly #arrivals: Arrivals

  /** `end.endArrival` is called if the request must be ended before it has fully arrived. */
  constructor(
    sender: Sender,
    arrivals: Arrivals,
    end: { endArrival(error: StatusError): void },
    requests: 0 | 1 = 1,
  ) {
    super()
    this.sender = sender
    this.requests = requests
    this.#arrivals = arrivals
    this.#end = end
  }

  onLate(): void {
    this.#arrivals.endLate(this)
  }

  /** Ends the request with an error. */
  end(error: StatusError): void {
    this.#end.endArrival(error)
  }
}

/**
 * The requests that are arriving at a server. Bounds the number of these requests, their bytes in memory, and the
 * time that each request may take.
 *
 * When a bound is exceeded, one request is ended to free capacity. This is the oldest request on the busiest
 * connection of the busiest peer. A request that arrives quickly is therefore always accepted, even if other peers
 * are slow or send a lot.
 */
export class Arrivals {
  readonly #bounds: ArrivalBounds
  readonly #listeners: OverloadListeners
  readonly #deadlines: DeadlineQueue
  #arriving = 0
  #bytes = 0
  #check: NodeJS.Immediate | undefined
  #isMakingRoom = false

  constructor(bounds: ArrivalBounds, listeners: OverloadListeners) {
    this.#bounds = bounds
    this.#listeners = listeners
    this.#deadlines = new DeadlineQueue(bounds.arrivalMs)
  }

  close(): void {
    this.#deadlines.close()
  }

  /** Counts a request that begins to arrive, and starts its deadline. */
  begin(arrival: Arrival): void {
    const { sender } = arrival
    this.#deadlines.start(arrival)
    if (arrival.requests === 0) return
    sender.arriving++
    sender.peer.arriving++
    // Check the bound only after this turn of the event loop, because requests that are read in one turn begin
    // together. Most of these requests have fully arrived when the turn ends.
    if (++this.#arriving > this.#bounds.mostArriving) this.#check ??= setImmediate(() => this.#endExcess())
  }

  #endExcess(): void {
    this.#check = undefined
    for (let left = MOST_ENDED_AT_ONCE; this.#arriving > this.#bounds.mostArriving; left--) {
      if (left === 0) {
        this.#check = setImmediate(() => this.#endExcess())
        return
      }
      this.#makeRoom("arriving")
    }
  }

  /**
   * Counts a piece of a request and the bytes that it occupies in memory. Returns false if the request is no longer
   * arriving. This call may have ended the request to free capacity, or because it arrives in too many small pieces.
   */
  hold(arrival: Arrival, bytes: number): boolean {
    if (!arrival.isRunning) return false
    const { sender } = arrival
    arrival.bytes += bytes
    sender.bytes += bytes
    sender.peer.bytes += bytes
    this.#bytes += bytes
    if (arrival.requests > 0) {
      if (++arrival.pieces > FREE_PIECES + arrival.bytes / MEAN_PIECE_BYTES) {
        this.end(arrival)
        arrival.end(new StatusError(Code.INVALID_ARGUMENT, SHREDDED))
      } else if (this.isFull(sender.bytes)) this.#refuse("bytes", arrival)
    }
    this.#endHeaviest()
    return arrival.isRunning
  }

  #endHeaviest(): void {
    // The response to an ended request is counted too, and may exceed the bound again. Do not end further requests
    // within this call, because this could affect thousands of requests.
    if (this.#isMakingRoom) return
    this.#isMakingRoom = true
    try {
      while (this.#bytes > this.#bounds.mostBytes && this.#makeRoom("bytes"));
    } finally {
      this.#isMakingRoom = false
    }
  }

  /** Stops counting bytes that are no longer in memory. */
  release(arrival: Arrival, bytes: number): void {
    const { sender } = arrival
    arrival.bytes -= bytes
    sender.bytes -= bytes
    sender.peer.bytes -= bytes
    this.#bytes -= bytes
  }

  /** Whether `bytes` exceeds the share of one connection. */
  isFull(bytes: number): boolean {
    return bytes > this.#bounds.mostBytes / 4
  }

  /** Restarts the deadline of an arrival. */
  extend(arrival: Arrival): void {
    this.#deadlines.start(arrival)
  }

  /**
   * Stops counting a request that has arrived or whose caller has disconnected. A no-op if the request has already
   * ended.
   */
  end(arrival: Arrival): void {
    if (!arrival.isRunning) return
    this.#deadlines.stop(arrival)
    this.#forget(arrival)
  }

  /** Ends a request whose deadline has passed. */
  endLate(arrival: Arrival): void {
    this.#forget(arrival)
    const message = `The request did not arrive within ${this.#bounds.arrivalMs} ms.`
    arrival.end(new StatusError(Code.DEADLINE_EXCEEDED, message))
  }

  #forget(arrival: Arrival): void {
    const { sender, requests } = arrival
    this.release(arrival, arrival.bytes)
    this.#arriving -= requests
    sender.arriving -= requests
    sender.peer.arriving -= requests
  }

  #refuse(kind: Weight, arrival: Arrival): void {
    this.end(arrival)
    this.#listeners.onOverload?.(kind, arrival.sender.peer.address)
    arrival.end(new OverloadError(REFUSED[kind]))
  }

  /** Ends one request. Returns false if there is no request to end. */
  #makeRoom(kind: Weight): boolean {
    let heaviest: Arrival | undefined
    // The queue runs from the oldest request to the newest, so the oldest of equally heavy requests is found.
    for (
      let next = this.#deadlines.first as Arrival | undefined;
      next !== undefined;
      next = next.later as Arrival
    ) {
      if (kind === "bytes" ? next.bytes === 0 : next.requests === 0) continue
      if (heaviest === undefined || isHeavier(next.sender, heaviest.sender, kind)) heaviest = next
    }
    if (heaviest === undefined) return false
    this.#refuse(kind, heaviest)
    return true
  }
}

/** Bytes of memory that a response takes in addition to its message. */
const ANSWER_BYTES = 512
/** Number of consecutive calls that are refused because of unread responses before their connection is closed. */
const MOST_REFUSED = 100

/**
 * The responses that the client of a connection has not read. The responses count as bytes of unfinished requests,
 * because they take memory in the same way. If the client reads nothing for twice the time that a request may take to
 * arrive, the connection is closed.
 */
export class UnreadAnswers extends Arrival {
  readonly #socket: Socket
  readonly #arrivals: Arrivals
  readonly #end: () => void
  #sent = -1
  #refused = 0

  /** `end` closes the connection. */
  constructor(sender: Sender, socket: Socket, arrivals: Arrivals, end: () => void) {
    super(sender, arrivals, { endArrival: end }, 0)
    this.#socket = socket
    this.#arrivals = arrivals
    this.#end = end
  }

  /**
   * Counts a response. Returns the number of bytes to pass to `remove` once the response has been sent or its stream
   * has closed.
   */
  add(length: number): number {
    const bytes = length + ANSWER_BYTES
    if (!this.isRunning) {
      this.#sent = -1
      this.#arrivals.begin(this)
    }
    this.#arrivals.hold(this, bytes)
    return bytes
  }

  remove(bytes: number): void {
    // If the connection has been ended, its bytes are no longer counted.
    this.#arrivals.release(this, Math.min(bytes, this.bytes))
    if (this.bytes === 0) this.#arrivals.end(this)
  }

  /**
   * Returns true if the client must read responses before its next call. Closes the connection if the client keeps
   * calling without reading responses.
   */
  refuses(): boolean {
    if (!this.#arrivals.isFull(this.bytes)) this.#refused = 0
    else if (++this.#refused > MOST_REFUSED) this.#end()
    return this.#refused > 0
  }

  override onLate(): void {
    const sent = sentBytes(this.#socket)
    if (sent === this.#sent) {
      this.#arrivals.endLate(this)
      return
    }
    this.#sent = sent
    this.#arrivals.extend(this)
  }
}

/**
 * Returns the number of bytes that a socket has passed to the operating system. Node's public API also counts bytes
 * that still wait in the queue of the socket. Returns NaN, which never equals an earlier result, if the socket has no
 * handle.
 */
function sentBytes(socket: Socket): number {
  const { _handle: handle } = socket as {
    _handle?: { bytesWritten?: number; writeQueueSize?: number } | null
  }
  return (handle?.bytesWritten ?? Number.NaN) - (handle?.writeQueueSize ?? 0)
}

type Weight = "arriving" | "bytes"

const REFUSED: Readonly<Record<Weight, string>> = {
  arriving: "Too many requests are arriving; try again later.",
  bytes: "Too many bytes of unfinished requests are in memory; try again later.",
}

const SHREDDED = "The request arrives in too many small pieces; send larger pieces."

function isHeavier(one: Sender, other: Sender, kind: Weight): boolean {
  return one.peer[kind] === other.peer[kind] ? one[kind] > other[kind] : one.peer[kind] > other.peer[kind]
}
