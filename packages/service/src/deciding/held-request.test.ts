import { EventEmitter } from "node:events"
import { setImmediate as nextTurn } from "node:timers/promises"
import { expect, it } from "vitest"
import { CallPlaces, InFlight } from "../bounds/in-flight.ts"
import { Peers } from "../bounds/peers.ts"
import type { Asking } from "../calls.ts"
import { heldBy } from "./held-request.ts"
import type { ServiceGuard } from "./service-guards.ts"

const HOLDING = { mayHold: true, service: "shop" } as ServiceGuard

it("a closed connection releases its held requests over several event-loop turns, except requests that were already admitted", async () => {
  const inFlight = new InFlight(10_000, 2 ** 30, new Peers(), {})
  const peer = inFlight.peerOf("192.0.2.1")
  const connection = new EventEmitter().setMaxListeners(0)
  const released: number[] = []
  const listeners: (() => void)[] = []
  const callers: Asking[] = []
  for (let index = 0; index < 1_000; index++) {
    const places = new CallPlaces(inFlight, peer)
    places.take(undefined, 100)
    const caller = heldBy(HOLDING, connection as unknown as Asking, places)
    const listener = (): void => {
      released.push(index)
      caller.off("close", listener)
    }
    caller.once("close", listener)
    callers.push(caller)
    listeners.push(listener)
  }
  expect(peer.held).toBe(1_000)
  connection.emit("close")
  expect(released).toEqual([])
  callers[999]?.off("close", listeners[999] as () => void)
  await nextTurn()
  expect(released.length).toBeGreaterThan(0)
  expect(released.length).toBeLessThan(100)
  while (released.length < 999) await nextTurn()
  await nextTurn()
  expect(released).toEqual(Array.from({ length: 999 }, (_, index) => index))
  expect(peer.held).toBe(0)
})
