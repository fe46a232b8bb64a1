import type { DoorListeners } from "./door.ts"
import type { Peer, Peers, Usage } from "./peers.ts"
import { OverloadError } from "./status-error.ts"

type Kind = keyof Usage

/** A peer or a service may have three times as much as is left free, so a newcomer always finds room. */
const TIMES_FREE = 3
const LARGEST_SHARE = TIMES_FREE / (TIMES_FREE + 1)

const TOO_MANY = "Too many calls are in flight; try again later."
const TOO_MANY_HELD = "Too many calls are held by rules that queue; try again later."

/**
 * Counts what is in flight at a door, and shares the room for it: single calls, requests in batches and held requests each have as much.
 * No peer and no service can use up the room of the others, and one that is alone can still use three quarters of it.
 */
export class InFlight {
  readonly #most: number
  readonly #peers: Peers
  readonly #onOverload: DoorListeners["onOverload"]
  readonly #total: Usage = { calls: 0, batched: 0, held: 0 }
  readonly #services = new Map<string, Usage>()

  constructor(most: number, peers: Peers, onOverload: DoorListeners["onOverload"]) {
    this.#most = most
    this.#peers = peers
    this.#onOverload = onOverload
  }

  /** The peer of an address. */
  peerOf(address: string): Peer {
    return this.#peers.of(address)
  }

  /** Counts a single call, or a batch with as many requests, and returns how many places it takes. Throws OverloadError. */
  enter(peer: Peer, kind: "calls" | "batched", requests: number): number {
    // A batch that comes alone is accepted, whatever its length.
    const places = Math.min(requests, Math.ceil(this.#most * LARGEST_SHARE))
    if (!this.#fits(kind, peer, places)) throw this.#refuse("in-flight", peer)
    this.#add(kind, peer, places)
    return places
  }

  /** Gives back places of a call. */
  leave(peer: Peer, kind: "calls" | "batched", places: number): void {
    this.#add(kind, peer, -places)
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

  /** Counts a request that a rule begins to hold. Returns whether there is room for it. */
  hold(service: string, peer: Peer): boolean {
    const usage = this.#usageOf(service)
    if (this.#fits("held", peer, 1) && this.#isFair("held", usage, 1, 1)) {
      this.#add("held", peer, 1)
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

  #fits(kind: Kind, peer: Usage, places: number): boolean {
    return this.#total[kind] + places <= this.#most && this.#isFair(kind, peer, places, places)
  }

  /** Whether somebody may have more, when `taken` of these are to be taken from what is free. */
  #isFair(kind: Kind, usage: Usage, more: number, taken: number): boolean {
    const free = this.#most - this.#total[kind] - taken
    return usage[kind] === 0 || usage[kind] + more <= TIMES_FREE * free
  }

  #add(kind: Kind, peer: Usage, places: number): void {
    this.#total[kind] += places
    peer[kind] += places
  }

  #refuse(what: "in-flight", peer: Peer): OverloadError {
    this.#onOverload(what, peer.address)
    return new OverloadError(TOO_MANY)
  }

  #usageOf(service: string): Usage {
    let usage = this.#services.get(service)
    if (usage === undefined) {
      usage = { calls: 0, batched: 0, held: 0 }
      this.#services.set(service, usage)
    }
    return usage
  }

  #forgetIfUnused(service: string, { calls, held }: Usage): void {
    if (calls === 0 && held === 0) this.#services.delete(service)
  }
}

/** The places that one call takes at its door, from the end of its arrival to its answer. */
export class Places {
  readonly #inFlight: InFlight
  readonly #peer: Peer
  #kind: "calls" | "batched" = "calls"
  #taken = 0
  /** The service among whose calls it counts. */
  #service: string | undefined
  #isWaiting = false

  constructor(inFlight: InFlight, peer: Peer) {
    this.#inFlight = inFlight
    this.#peer = peer
  }

  /** Takes a place, or as many as a batch has requests. Throws OverloadError if there is no room. */
  take(requestsInBatch: number | undefined): void {
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
    this.#inFlight.leave(this.#peer, this.#kind, this.#taken)
    this.#taken = 0
    this.#leaveService()
  }

  /** A rule holds a request of the call, which then has a place among held requests instead. Throws OverloadError if none is free. */
  hold(service: string): void {
    if (!this.#inFlight.hold(service, this.#peer)) throw new OverloadError(TOO_MANY_HELD)
    if (this.#taken === 0) return
    this.#taken--
    this.#inFlight.leave(this.#peer, this.#kind, 1)
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
