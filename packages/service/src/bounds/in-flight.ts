import { OverloadError } from "../status-error.ts"
import { noUsage, type Peer, type Peers, type Usage } from "./peers.ts"

/**
 * The limit that was reached: arriving requests, their bytes, calls in flight, or calls held by the rules of a service.
 */
export type Overload = "arriving" | "bytes" | "in-flight" | "held"

/** Callbacks for requests that are refused because a limit is reached. */
export interface OverloadListeners {
  onOverload?(what: Overload, peer: string): void
}

type UsageKind = keyof Usage

/**
 * A peer or a service may use at most three times the capacity that is left free, so some capacity always remains for
 * a newcomer.
 */
const TIMES_FREE = 3
const LARGEST_SHARE = TIMES_FREE / (TIMES_FREE + 1)

/**
 * Streams allowed for each call in flight. A stream may belong to a call that arrives, a call in flight, a held call,
 * or a response that the client has not read.
 */
const STREAMS_PER_CALL = 4
/**
 * Bytes of memory that each byte of a message may take, as text and as the objects parsed from it. Objects without
 * members take up to 14 bytes for each byte of JSON. Typical messages take fewer than 5 bytes.
 */
const MEMORY_PER_BYTE = 8

const TOO_MANY = "Too many calls are in flight; try again later."
const TOO_MANY_BYTES = "Too many bytes of unanswered requests are in memory; try again later."
const TOO_MANY_HELD = "Too many calls are held by rules that queue; try again later."

/**
 * Counts the calls in flight at a server, and shares the capacity among peers and services. Single calls, requests in
 * batches, and held requests each have a separate capacity of the same size.
 *
 * Half of the bytes for messages are reserved for held requests, and the other half for all other calls. No peer and
 * no service can use up the capacity of other peers and services. A lone peer or service can still use three quarters
 * of the capacity.
 */
export class InFlight {
  readonly #most: Usage
  readonly #peers: Peers
  readonly #listeners: OverloadListeners
  readonly #total: Usage = noUsage()
  readonly #services = new Map<string, Usage>()

  /**
   * `most` limits calls, batched requests and held requests separately. `mostBytes` limits the memory for all
   * messages.
   */
  constructor(most: number, mostBytes: number, peers: Peers, listeners: OverloadListeners) {
    this.#most = {
      calls: most,
      batched: most,
      held: most,
      streams: STREAMS_PER_CALL * most,
      memory: mostBytes / 2,
      heldMemory: mostBytes / 2,
    }
    this.#peers = peers
    this.#listeners = listeners
  }

  /** Returns the peer of an address. */
  peerOf(address: string): Peer {
    return this.#peers.of(address)
  }

  /**
   * Reserves places for a call (one per request), or memory for its message. Returns the number of places or bytes
   * that it reserved. Throws OverloadError if a limit is reached.
   */
  enter(peer: Peer, kind: Exclude<UsageKind, "held" | "heldMemory">, wanted: number): number {
    // Cap the size, so that a batch of any length is accepted when nothing else is in flight.
    const taken = Math.min(wanted, Math.ceil(this.#most[kind] * LARGEST_SHARE))
    if (!this.#fits(kind, peer, taken)) throw this.#refuse(kind === "memory" ? "bytes" : "in-flight", peer)
    this.#add(kind, peer, taken)
    return taken
  }

  /** Releases places or memory. */
  leave(peer: Peer, kind: Exclude<UsageKind, "held">, taken: number): void {
    this.#add(kind, peer, -taken)
    this.#peers.forgetIfGone(peer)
  }

  /** Throws OverloadError if one more call of this service would use capacity that is reserved for other services. */
  requireRoomFor(service: string, peer: Peer): void {
    const usage = this.#services.get(service)
    // Pass 0 as `taken`, because the call is already counted as a call of its peer.
    if (usage === undefined || this.#isFair("calls", usage, 1, 0)) return
    throw this.#refuse("in-flight", peer)
  }

  /** Counts a call for its service while the call waits, for example for the store. */
  beginCall(service: string): void {
    this.#usageOf(service).calls++
  }

  endCall(service: string): void {
    const usage = this.#usageOf(service)
    usage.calls--
    this.#forgetIfUnused(service, usage)
  }

  /**
   * Counts a request that a rule begins to hold, and the memory for its message. Returns false if a limit is reached.
   */
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
    this.#listeners.onOverload?.("held", peer.address)
    return false
  }

  /** Stops counting a held request. */
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

  /**
   * True if a peer or a service may use `more` additional places. Of these places, `taken` are not yet counted in the
   * total.
   */
  #isFair(kind: UsageKind, usage: Usage, more: number, taken: number): boolean {
    const free = this.#most[kind] - this.#total[kind] - taken
    return usage[kind] === 0 || usage[kind] + more <= TIMES_FREE * free
  }

  #add(kind: UsageKind, peer: Usage, places: number): void {
    this.#total[kind] += places
    peer[kind] += places
  }

  #refuse(what: "in-flight" | "bytes", peer: Peer): OverloadError {
    this.#listeners.onOverload?.(what, peer.address)
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

/** The places that one call occupies at its server, from the end of its arrival to its response. */
export class CallPlaces {
  readonly #inFlight: InFlight
  readonly #peer: Peer
  #kind: "calls" | "batched" = "calls"
  #taken = 0
  #memory = 0
  #heldMemory = 0
  /** The service for which the call is counted. */
  #service: string | undefined
  #isWaiting = false

  constructor(inFlight: InFlight, peer: Peer) {
    this.#inFlight = inFlight
    this.#peer = peer
  }

  /** Reserves a place for each request of the call, and memory for the bytes of its message. Throws OverloadError. */
  take(requestsInBatch: number | undefined, bytes: number): void {
    this.#memory = this.#inFlight.enter(this.#peer, "memory", bytes * MEMORY_PER_BYTE)
    this.#kind = requestsInBatch === undefined ? "calls" : "batched"
    this.#taken = this.#inFlight.enter(this.#peer, this.#kind, requestsInBatch ?? 1)
  }

  /** Exchanges the place of a single call for a place for each item of its list. Throws OverloadError. */
  takeForEach(items: number): void {
    const taken = this.#inFlight.enter(this.#peer, "batched", items)
    this.#inFlight.leave(this.#peer, this.#kind, this.#taken)
    this.#kind = "batched"
    this.#taken = taken
  }

  /** Sets the service of a single call. Throws OverloadError if that service has too many calls in flight. */
  serve(service: string): void {
    this.#inFlight.requireRoomFor(service, this.#peer)
    this.#service = service
  }

  /** Counts the call for its service while the call waits for its result. */
  wait(): void {
    if (this.#service !== undefined) this.#inFlight.beginCall(this.#service)
    this.#isWaiting = true
  }

  /** Releases all places and memory. */
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

  /**
   * Moves a request that a rule holds from a place of the call to a place for held requests. Throws OverloadError if
   * no such place is free.
   */
  hold(service: string): void {
    // Estimate the memory of this request by assuming that all requests of a batch have the same size.
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

  /** Releases the place of a held request that is about to be answered. */
  release(service: string): void {
    this.#inFlight.release(service, this.#peer)
  }

  #leaveService(): void {
    if (this.#isWaiting && this.#service !== undefined) this.#inFlight.endCall(this.#service)
    this.#service = undefined
  }
}
