import type { DoorListeners } from "./door.ts"
import { noUsage, type Peer, type Peers, type Usage } from "./peers.ts"
import { OverloadError } from "./status-error.ts"

type UsageKind = keyof Usage

/** A peer or a service may have three times as much as is left free, so a newcomer always finds room. */
const TIMES_FREE = 3
const LARGEST_SHARE = TIMES_FREE / (TIMES_FREE + 1)

/** Streams for each call in flight: calls that arrive, calls in flight, held calls, and answers that have not been taken. */
const STREAMS_PER_CALL = 4
/**
 * Bytes of memory for each byte of a message: its text, and the objects that are read from it. Objects without members take up to
 * 14 bytes for each byte of JSON, and everything that callers usually send takes fewer than 5.
 */
const MEMORY_PER_BYTE = 8

const TOO_MANY = "Too many calls are in flight; try again later."
const TOO_MANY_BYTES = "Too many bytes of unanswered requests are in memory; try again later."
const TOO_MANY_HELD = "Too many calls are held by rules that queue; try again later."

/**
 * Counts what is in flight at a door, and shares the room for it: single calls, requests in batches and held requests each have as much.
 * The messages of held requests have half of the bytes for messages, and those of all other calls have the other half.
 * No peer and no service can use up the room of the others, and one that is alone can still use three quarters of it.
 */
export class InFlight {
  readonly #most: Usage
  readonly #peers: Peers
  readonly #onOverload: DoorListeners["onOverload"]
  readonly #total: Usage = noUsage()
  readonly #services = new Map<string, Usage>()

  /** `most` bounds each kind of calls and requests, and `mostBytes` the memory for all messages. */
  constructor(most: number, mostBytes: number, peers: Peers, onOverload: DoorListeners["onOverload"]) {
    this.#most = {
      calls: most,
      batched: most,
      held: most,
      streams: STREAMS_PER_CALL * most,
      memory: mostBytes / 2,
      heldMemory: mostBytes / 2,
    }
    this.#peers = peers
    this.#onOverload = onOverload
  }

  /** The peer of an address. */
  peerOf(address: string): Peer {
    return this.#peers.of(address)
  }

  /** Counts places of a call, as many as it has requests, or bytes of its message, and returns how many. Throws OverloadError. */
  enter(peer: Peer, kind: Exclude<UsageKind, "held" | "heldMemory">, wanted: number): number {
    // A batch that comes alone is accepted, whatever its length.
    const taken = Math.min(wanted, Math.ceil(this.#most[kind] * LARGEST_SHARE))
    if (!this.#fits(kind, peer, taken)) throw this.#refuse(kind === "memory" ? "bytes" : "in-flight", peer)
    this.#add(kind, peer, taken)
    return taken
  }

  /** Gives back places or memory. */
  leave(peer: Peer, kind: Exclude<UsageKind, "held">, taken: number): void {
    this.#add(kind, peer, -taken)
    this.#peers.forgetIfGone(peer)
  }

  /** Throws OverloadError if a service has so many calls in flight that another one would take the room of other services. */
  requireRoomFor(service: string, peer: Peer): void {
    const usage = this.#services.get(service)
    // The call itself has been counted already, as one of its peer.
    if (usage === undefined || this.#isFair("calls", usage, 1, 0)) return
    throw this.#refuse("in-flight", peer)
  }

  /** Counts a call of a service that waits, such as for the store. */
  beginCall(service: string): void {
    this.#usageOf(service).calls++
  }

  endCall(service: string): void {
    const usage = this.#usageOf(service)
    usage.calls--
    this.#forgetIfUnused(service, usage)
  }

  /** Counts a request that a rule begins to hold, and the memory for its message. Returns whether there is room for it. */
  hold(service: string, peer: Peer, memory: number): boolean {
    const usage = this.#usageOf(service)
    const isRoom = this.#fits("held", peer, 1) && this.#fits("heldMemory", peer, memory)
    if (isRoom && this.#isFair("held", usage, 1, 1)) {
      this.#add("held", peer, 1)
      this.#add("heldMemory", peer, memory)
      usage.held++
      return true
    }
    this.#forgetIfUnused(service, usage)
    this.#onOverload("held", peer.address)
    return false
  }

  /** A request is held no longer. */
  release(service: string, peer: Peer): void {
    const usage = this.#usageOf(service)
    usage.held--
    this.#forgetIfUnused(service, usage)
    this.#add("held", peer, -1)
    this.#peers.forgetIfGone(peer)
  }

  #fits(kind: UsageKind, peer: Usage, places: number): boolean {
    return this.#total[kind] + places <= this.#most[kind] && this.#isFair(kind, peer, places, places)
  }

  /** Whether somebody may have more, when `taken` of these are to be taken from what is free. */
  #isFair(kind: UsageKind, usage: Usage, more: number, taken: number): boolean {
    const free = this.#most[kind] - this.#total[kind] - taken
    return usage[kind] === 0 || usage[kind] + more <= TIMES_FREE * free
  }

  #add(kind: UsageKind, peer: Usage, places: number): void {
    this.#total[kind] += places
    peer[kind] += places
  }

  #refuse(what: "in-flight" | "bytes", peer: Peer): OverloadError {
    this.#onOverload(what, peer.address)
    return new OverloadError(what === "bytes" ? TOO_MANY_BYTES : TOO_MANY)
  }

  #usageOf(service: string): Usage {
    let usage = this.#services.get(service)
    if (usage === undefined) {
      usage = noUsage()
      this.#services.set(service, usage)
    }
    return usage
  }

  #forgetIfUnused(service: string, { calls, held }: Usage): void {
    if (calls === 0 && held === 0) this.#services.delete(service)
  }
}

/** The places that one call takes at its door, from the end of its arrival to its answer. */
export class CallPlaces {
  readonly #inFlight: InFlight
  readonly #peer: Peer
  #kind: "calls" | "batched" = "calls"
  #taken = 0
  #memory = 0
  #heldMemory = 0
  /** The service among whose calls it counts. */
  #service: string | undefined
  #isWaiting = false

  constructor(inFlight: InFlight, peer: Peer) {
    this.#inFlight = inFlight
    this.#peer = peer
  }

  /** Takes a place, or as many as a batch has requests, and memory for the bytes of the message. Throws OverloadError. */
  take(requestsInBatch: number | undefined, bytes: number): void {
    this.#memory = this.#inFlight.enter(this.#peer, "memory", bytes * MEMORY_PER_BYTE)
    this.#kind = requestsInBatch === undefined ? "calls" : "batched"
    this.#taken = this.#inFlight.enter(this.#peer, this.#kind, requestsInBatch ?? 1)
  }

  /** Says which service a single call is about. Throws OverloadError if that service has too many calls in flight. */
  serve(service: string): void {
    this.#inFlight.requireRoomFor(service, this.#peer)
    this.#service = service
  }

  /** The call is not answered at once. */
  wait(): void {
    if (this.#service !== undefined) this.#inFlight.beginCall(this.#service)
    this.#isWaiting = true
  }

  /** Gives back all places. */
  leave(): void {
    const inFlight = this.#inFlight
    const peer = this.#peer
    inFlight.leave(peer, this.#kind, this.#taken)
    inFlight.leave(peer, "memory", this.#memory)
    if (this.#heldMemory > 0) inFlight.leave(peer, "heldMemory", this.#heldMemory)
    this.#taken = 0
    this.#memory = 0
    this.#heldMemory = 0
    this.#leaveService()
  }

  /** A rule holds a request of the call, which then has a place among held requests instead. Throws OverloadError if none is free. */
  hold(service: string): void {
    // The part of the message that this request is, if all requests of a batch are equal.
    const memory = this.#taken === 0 ? 0 : Math.ceil(this.#memory / this.#taken)
    if (!this.#inFlight.hold(service, this.#peer, memory)) throw new OverloadError(TOO_MANY_HELD)
    if (this.#taken === 0) return
    this.#taken--
    this.#memory -= memory
    this.#heldMemory += memory
    this.#inFlight.leave(this.#peer, this.#kind, 1)
    this.#inFlight.leave(this.#peer, "memory", memory)
    this.#leaveService()
  }

  /** A request of the call is held no longer, and is about to be answered. */
  release(service: string): void {
    this.#inFlight.release(service, this.#peer)
  }

  #leaveService(): void {
    if (this.#isWaiting && this.#service !== undefined) this.#inFlight.endCall(this.#service)
    this.#service = undefined
  }
}
