import { Deadline, DeadlineQueue } from "./deadlines.ts"
import type { DoorListeners } from "./door.ts"
import type { Peer } from "./peers.ts"
import { Code, OverloadError, StatusError } from "./status-error.ts"

/** Default limit for the bytes of unfinished requests at one of the two servers: 64 MiB. */
export const DEFAULT_MAX_UNFINISHED_BYTES = 67_108_864

/** Maximum number of excess requests to end in one turn of the event loop. Thousands may begin in one turn. */
const MOST_ENDED_AT_ONCE = 32

/** A connection that sends requests, with counters for its requests that are still arriving. */
export interface Sender {
  readonly peer: Peer
  arriving: number
  bytes: number
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
  readonly #end: { endArrival(error: StatusError): void }
  readonly #arrivals: Arrivals

  /** `end.endArrival` is called if the request has to end before it has arrived. */
  constructor(sender: Sender, arrivals: Arrivals, end: { endArrival(error: StatusError): void }) {
    super()
    this.sender = sender
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
 * When a bound is exceeded, one request is ended to make room. It is the oldest request of the heaviest connection of
 * the heaviest peer. So a request that arrives quickly always finds room, even if other peers are slow or send a lot.
 */
export class Arrivals {
  readonly #bounds: ArrivalBounds
  readonly #onOverload: DoorListeners["onOverload"]
  readonly #deadlines: DeadlineQueue
  #arriving = 0
  #bytes = 0
  #check: NodeJS.Immediate | undefined

  constructor(bounds: ArrivalBounds, onOverload: DoorListeners["onOverload"]) {
    this.#bounds = bounds
    this.#onOverload = onOverload
    this.#deadlines = new DeadlineQueue(bounds.arrivalMs)
  }

  close(): void {
    this.#deadlines.close()
  }

  /** Counts a request that begins to arrive, and starts its deadline. */
  begin(arrival: Arrival): void {
    const { sender } = arrival
    this.#deadlines.start(arrival)
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
   * Counts bytes of a request that are in memory. Returns false if the request is no longer arriving: this call may
   * have ended it to make room.
   */
  hold(arrival: Arrival, bytes: number): boolean {
    if (!arrival.isRunning) return false
    const { sender } = arrival
    arrival.bytes += bytes
    sender.bytes += bytes
    sender.peer.bytes += bytes
    this.#bytes += bytes
    if (sender.bytes > this.#bounds.mostBytes / 4) this.#refuse("bytes", arrival)
    while (this.#bytes > this.#bounds.mostBytes) this.#makeRoom("bytes")
    return arrival.isRunning
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

  #forget({ sender, bytes }: Arrival): void {
    this.#arriving--
    this.#bytes -= bytes
    sender.arriving--
    sender.bytes -= bytes
    sender.peer.arriving--
    sender.peer.bytes -= bytes
  }

  #refuse(kind: Weight, arrival: Arrival): void {
    this.end(arrival)
    this.#onOverload(kind, arrival.sender.peer.address)
    arrival.end(new OverloadError(REFUSED[kind]))
  }

  #makeRoom(kind: Weight): void {
    let heaviest: Arrival | undefined
    // The queue runs from the oldest request to the newest, so the oldest of equally heavy requests is found.
    for (
      let next = this.#deadlines.first as Arrival | undefined;
      next !== undefined;
      next = next.later as Arrival
    ) {
      if (kind === "bytes" && next.bytes === 0) continue
      if (heaviest === undefined || isHeavier(next.sender, heaviest.sender, kind)) heaviest = next
    }
    if (heaviest !== undefined) this.#refuse(kind, heaviest)
  }
}

type Weight = "arriving" | "bytes"

const REFUSED: Readonly<Record<Weight, string>> = {
  arriving: "Too many requests are arriving; try again later.",
  bytes: "Too many bytes of unfinished requests are in memory; try again later.",
}

function isHeavier(one: Sender, other: Sender, kind: Weight): boolean {
  return one.peer[kind] === other.peer[kind] ? one[kind] > other[kind] : one.peer[kind] > other.peer[kind]
}
