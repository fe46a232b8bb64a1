import { Deadline, DeadlineQueue } from "./deadlines.ts"
import type { DoorListeners } from "./door.ts"
import type { Peer } from "./peers.ts"
import { Code, OverloadError, StatusError } from "./status-error.ts"

/** Bytes of unfinished requests that a door keeps by default: 64 MiB. */
export const DEFAULT_MAX_UNFINISHED_BYTES = 67_108_864

/** Excess requests that are ended in one turn of the event loop: thousands may begin in one turn. */
const MOST_ENDED_AT_ONCE = 32

/** Who sends requests: a connection, with what it has of those that are arriving. */
export interface Sender {
  readonly peer: Peer
  arriving: number
  bytes: number
}

/** Bounds of requests that have begun to arrive, and have not arrived. */
export interface ArrivalBounds {
  /** Requests at a time. */
  readonly mostArriving: number
  /** Their bytes together. A connection may have a quarter of these. */
  readonly mostBytes: number
  /** Milliseconds that each may take. */
  readonly arrivalMs: number
}

/** A request that is arriving. */
export class Arrival extends Deadline {
  readonly sender: Sender
  bytes = 0
  readonly #end: { endArrival(error: StatusError): void }
  readonly #arrivals: Arrivals

  /** `end` is told when the request has to end before it has arrived. */
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
 * The requests that are arriving at a door: how many they are, how many bytes of them are in memory, and how long each may take. When
 * there are too many, or too many bytes, the oldest request ends of the connection that has most, of the peer that has most. So a
 * request that arrives quickly always finds room, whatever the others do.
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

  /** A request begins to arrive. */
  begin(arrival: Arrival): void {
    const { sender } = arrival
    this.#deadlines.start(arrival)
    sender.arriving++
    sender.peer.arriving++
    // Requests that are read together begin together. Most of them have arrived when this turn of the event loop is over.
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

  /** Counts bytes of a request that are in memory. Returns whether it is still arriving: it may be the one that had to end. */
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

  /** A request has arrived, or nobody waits for it. Does nothing if it has ended before. */
  end(arrival: Arrival): void {
    if (!arrival.isRunning) return
    this.#deadlines.stop(arrival)
    this.#forget(arrival)
  }

  /** Ends a request whose deadline has passed. */
  endLate(arrival: Arrival): void {
    this.#forget(arrival)
    const message = `The request did not come within ${this.#bounds.arrivalMs} ms.`
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
    // From the oldest to the newest, so that the oldest of equals is found.
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
