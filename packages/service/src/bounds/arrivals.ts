import type { Socket } from "node:net"
import { Code, OverloadError, StatusError } from "../status-error.ts"
import { Deadline, DeadlineQueue } from "./deadlines.ts"
import type { OverloadListeners } from "./in-flight.ts"
import type { Peer } from "./peers.ts"

/** Default limit for the bytes of unfinished requests at one of the two servers: 64 MiB. */
export const DEFAULT_MAX_UNFINISHED_BYTES = 67_108_864

/**
 * Bounds for the pieces of a request: the first ones may have any size, and further ones this many bytes on average.
 * Each piece takes as much time as a kilobyte, even if it has one byte.
 */
const FREE_PIECES = 1_024
const MEAN_PIECE_BYTES = 16

/** Maximum number of excess requests to end in one turn of the event loop. Thousands may begin in one turn. */
const MOST_ENDED_AT_ONCE = 32

/** A connection that sends requests, with counters for its requests that are still arriving. */
export interface Sender {
  readonly peer: Peer
  arriving: number
  bytes: number
  /** Counts a piece of a request of this length, also if it is discarded. */
  received(bytes: number): void
}

/** Bounds for requests that have begun to arrive but are not complete. */
export interface ArrivalBounds {
  /** Maximum number of requests that arrive at the same time. */
  readonly mostArriving: number
  /** Maximum number of bytes of all arriving requests. One connection may use a quarter of it. */
  readonly mostBytes: number
  /** Milliseconds that each request may take to arrive. */
  readonly arrivalMs: number
}

/** A request that is arriving. */
export class Arrival extends Deadline {
  readonly sender: Sender
  bytes = 0
  pieces = 0
  /** The number of requests that it counts as. */
  readonly requests: 0 | 1
  readonly #end: { endArrival(error: StatusError): void }
  readonly #arrivals: Arrivals

  /** `end.endArrival` is called if the request has to end before it has arrived. */
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
 * The requests that are arriving at a server. Bounds their number, their bytes in memory, and the time that each may
 * take.
 *
 * When a bound is exceeded, one request is ended to make room. This is the oldest request of the heaviest connection of
 * the heaviest peer. So a request that arrives quickly always finds room, even if other peers are slow or send a lot.
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
    // Check the bound after this turn of the event loop. Requests that are read in one turn begin together, and most of
    // them have arrived when the turn is over.
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
   * Counts a piece of a request, and its bytes that are in memory. Returns false if the request is no longer arriving:
   * this call may have ended it to make room, or because of its many small pieces.
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
    // The response to an ended request is held, too. Do not end others for it within this call: they could be
    // thousands.
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

  /** Whether these are more bytes than one connection may use. */
  isFull(bytes: number): boolean {
    return bytes > this.#bounds.mostBytes / 4
  }

  /** Starts the deadline of an arrival again. */
  extend(arrival: Arrival): void {
    this.#deadlines.start(arrival)
  }

  /** Stops counting a request that has arrived or whose caller has gone. A no-op if the request has already ended. */
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

  /** Ends one request. Returns false if there is none to end. */
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

/** Bytes that a response takes beside its message. */
const ANSWER_BYTES = 512
/** Number of calls in a row that are refused because of unread responses, before their connection ends. */
const MOST_REFUSED = 100

/**
 * The responses that the client of a connection has not read. The responses count as bytes of unfinished requests,
 * because they take memory in the same way. If the client reads nothing for twice the arrival time, the connection
 * ends.
 */
export class UnreadAnswers extends Arrival {
  readonly #socket: Socket
  readonly #arrivals: Arrivals
  readonly #end: () => void
  #sent = -1
  #refused = 0

  /** `end` ends the connection. */
  constructor(sender: Sender, socket: Socket, arrivals: Arrivals, end: () => void) {
    super(sender, arrivals, { endArrival: end }, 0)
    this.#socket = socket
    this.#arrivals = arrivals
    this.#end = end
  }

  /**
   * Counts a response. Returns the number of bytes to pass to `remove` when it has been sent, or its stream has closed.
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
   * Returns true if the client has to read responses before its next call. Ends the connection of a client that calls
   * again and again.
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
 * Returns the number of bytes that a socket has passed to the system. Node counts bytes as written when they wait for
 * the system, too, and its public API does not distinguish them. Returns NaN, which equals nothing, if Node's handle is
 * not found.
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

const SHREDDED = "The request arrives in too many small pieces; send it in larger ones."

function isHeavier(one: Sender, other: Sender, kind: Weight): boolean {
  return one.peer[kind] === other.peer[kind] ? one[kind] > other[kind] : one.peer[kind] > other.peer[kind]
}
