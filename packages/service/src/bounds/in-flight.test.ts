import { beforeEach, describe, expect, it } from "vitest"
import { CallPlaces, InFlight } from "./in-flight.ts"
import { type Peer, Peers } from "./peers.ts"

const PEER = "192.0.2.1"

let overloads: unknown[]
let peers: Peers
let peer: Peer
beforeEach(() => {
  overloads = []
  peers = new Peers()
  peer = peers.of(PEER)
})
const room = (calls: number, bytes: number): InFlight =>
  new InFlight(calls, bytes, peers, { onOverload: (...overload) => void overloads.push(overload) })

describe("the service", () => {
  it("refuses a call that would use too many bytes, and reports the overload", () => {
    const inFlight = room(100, 1_600)
    new CallPlaces(inFlight, peer).take(undefined, 60)
    // Half of the 1600 bytes are reserved for held messages. A message counts as 8 times its length.
    expect(() => new CallPlaces(inFlight, peer).take(undefined, 60)).toThrow(
      "Too many bytes of unanswered requests are in memory",
    )
    expect(overloads).toEqual([["bytes", PEER]])
  })

  it("refuses a call while too many calls are in flight, and reports the overload", () => {
    const inFlight = room(1, 1_600)
    new CallPlaces(inFlight, peer).take(undefined, 1)
    expect(() => new CallPlaces(inFlight, peer).take(undefined, 1)).toThrow("Too many calls are in flight")
    expect(overloads).toEqual([["in-flight", PEER]])
  })

  it("lets a long batch hold its last request once an earlier request has ended, and finally frees all capacity", () => {
    const inFlight = room(4, 1_600)
    const batch = new CallPlaces(inFlight, peer)
    const usage = () => [peer.batched, peer.memory, peer.held, peer.heldMemory]
    // A batch takes at most three quarters of the four places, even if nothing else is in flight.
    batch.take(4, 12)
    expect(usage()).toEqual([3, 96, 0, 0])
    for (let i = 0; i < 3; i++) batch.hold("shop")
    expect(usage()).toEqual([0, 0, 3, 96])
    expect(() => batch.hold("shop")).toThrow("Too many calls are held")
    batch.release("shop")
    batch.hold("shop")
    expect(usage()).toEqual([0, 0, 3, 96])
    for (let i = 0; i < 3; i++) batch.release("shop")
    batch.leave()
    expect(usage()).toEqual([0, 0, 0, 0])
  })
})
