import { setImmediate as nextTurn } from "node:timers/promises"
import { afterEach, beforeEach, expect, it } from "vitest"
import { Arrival, Arrivals, type Sender } from "./arrivals.ts"
import { newPeer, type Peer } from "./peers.ts"

let arrivals: Arrivals
let ended: string[]
let refused: string[]
beforeEach(() => {
  ended = []
  refused = []
  arrivals = new Arrivals(
    { mostArriving: 3, mostBytes: 400, arrivalMs: 60_000 },
    {
      onOverload: (kind, address) => void refused.push(`${kind} ${address}`),
    },
  )
})
afterEach(() => arrivals.close())

function connection(peer: Peer): Sender {
  return { peer, arriving: 0, bytes: 0, received() {} }
}

function begin(name: string, sender: Sender): Arrival {
  const arrival = new Arrival(sender, arrivals, {
    endArrival: ({ message }) => ended.push(`${name}: ${message}`),
  })
  arrivals.begin(arrival)
  return arrival
}

it("the service ends the oldest request of the connection with the most requests when too many are arriving", async () => {
  const [quiet, busy] = [newPeer("192.0.2.1"), newPeer("192.0.2.2")]
  const first = connection(busy)
  begin("quiet", connection(quiet))
  begin("old", connection(busy))
  begin("a", first)
  begin("b", first)
  expect(ended).toEqual([])
  await nextTurn()
  expect(ended).toEqual(["a: Too many requests are arriving; try again later."])
  expect(refused).toEqual(["arriving 192.0.2.2"])
})

it("the service does not end a request if enough requests have fully arrived before the next event-loop turn", async () => {
  const sender = connection(newPeer("192.0.2.1"))
  const all = ["a", "b", "c", "d", "e"].map((name) => begin(name, sender))
  for (const arrival of all.slice(0, 3)) arrivals.end(arrival)
  await nextTurn()
  expect(ended).toEqual([])
  arrivals.end(all[0] as Arrival)
  expect(sender).toMatchObject({ arriving: 2, peer: { arriving: 2 } })
})

it("the service ends the request of a connection that uses more than a quarter of the bytes", () => {
  const arrival = begin("large", connection(newPeer("192.0.2.1")))
  expect(arrivals.hold(arrival, 100)).toBe(true)
  expect(arrivals.hold(arrival, 1)).toBe(false)
  expect(ended).toEqual(["large: Too many bytes of unfinished requests are in memory; try again later."])
  expect(arrivals.hold(arrival, 1)).toBe(false)
})

it("the service ends a request of the peer with the most bytes when all peers together use too many", () => {
  const [one, other] = [newPeer("192.0.2.1"), newPeer("192.0.2.2")]
  begin("empty", connection(one))
  const small = begin("small", connection(other))
  arrivals.hold(small, 90)
  const large = ["a", "b", "c"].map((name) => begin(name, connection(one)))
  for (const arrival of large) arrivals.hold(arrival, 100)
  expect(ended).toEqual([])
  expect(arrivals.hold(small, 10)).toBe(true)
  expect(arrivals.hold(begin("last", connection(other)), 20)).toBe(true)
  expect(ended.map((text) => text.split(":")[0])).toEqual(["a"])
  expect(refused).toEqual(["bytes 192.0.2.1"])
})

it("the service ends at most 32 requests in one turn of the event loop", async () => {
  const sender = connection(newPeer("192.0.2.1"))
  for (let i = 0; i < 100; i++) begin(`${i}`, sender)
  await nextTurn()
  expect(sender.arriving).toBe(68)
  for (let turn = 0; turn < 4; turn++) await nextTurn()
  expect(sender.arriving).toBe(3)
})
