import { expect, it } from "vitest"
import type { Policy } from "../../policy.ts"
import type { Ask } from "../ask.ts"
import { Lines } from "./lines.ts"
import { Ticket } from "./ticket.ts"

function ask(counter: string): Ask {
  const policy: Policy = {
    name: counter,
    counter,
    algorithm: "fixed-window",
    align: "epoch",
    limit: 1,
    windowMs: 1_000,
  }
  return {
    policy,
    partition: "",
    cost: 1,
    shadow: false,
    unitCost: 1,
    rejectionMessage: undefined,
    onStoreFailure: "local",
    throttle: { kind: "hard" },
    refusal: undefined,
    field: undefined,
  }
}

it("a line knows who sleeps in it: from when it is put to sleep until it stands there again, or leaves", () => {
  const lines = new Lines()
  const [a, b] = [ask("a"), ask("b")]
  const patience = { maxWaitMs: Number.POSITIVE_INFINITY, maxWaiting: 9, waitsFor: () => true }
  const both = new Ticket([a, b], [a, b], patience, 0)
  const one = new Ticket([a], [a], patience, 0)
  for (const ticket of [both, one]) lines.stand(ticket)
  const line = lines.find(a)
  const sleepers = () => [...(line?.sleepers ?? [])]
  expect(sleepers()).toEqual([])
  lines.sleep(both, a)
  lines.sleep(one, a)
  expect(sleepers()).toEqual([both, one])
  lines.stand(one)
  expect(sleepers()).toEqual([both])
  lines.leave(both)
  expect(sleepers()).toEqual([])
})

it("who stands in a line keeps its place there when it goes to others, or asks for something else of that counter", () => {
  const lines = new Lines()
  const patience = { maxWaitMs: 5, maxWaiting: 9, waitsFor: () => true }
  const [a, b] = [ask("a"), ask("b")]
  const ticket = new Ticket([a, b], [a, b], patience, 0)
  lines.stand(ticket)
  const [first] = ticket.places
  lines.park(ticket, a)
  expect(ticket.places).toEqual([first])
  const asks = [ask("c"), ask("a")]
  ticket.goBy(asks, asks)
  lines.stand(ticket)
  expect(ticket.places.map((place) => place === first)).toEqual([false, true])
  const sizes = (["a", "b", "c"] as const).map((name) => {
    const line = lines.find(ask(name))
    return line && [line.size, line.roaming.size, line.impatient.size]
  })
  expect(sizes).toEqual([[1, 1, 1], undefined, [1, 1, 1]])
  lines.leave(ticket)
  expect([lines.find(a), lines.find(ask("c"))]).toEqual([undefined, undefined])
})

it("a line knows who stands in it, who elsewhere too, and who not for ever; and nothing of who has left", () => {
  const lines = new Lines()
  const [a, b] = [ask("a"), ask("b")]
  const enter = (asks: readonly Ask[], maxWaitMs: number) => {
    const ticket = new Ticket(asks, asks, { maxWaitMs, maxWaiting: 9, waitsFor: () => true }, 0)
    lines.stand(ticket)
    return ticket
  }
  const tickets = [enter([a], 5), enter([a, b], Number.POSITIVE_INFINITY), enter([a, b], 7)]
  const line = lines.find(a)
  const sizes = () => [line?.size, line?.roaming.size, line?.impatient.size]
  expect(sizes()).toEqual([3, 2, 2])
  lines.park(tickets[2] as Ticket, a)
  expect([sizes(), lines.find(b)?.size]).toEqual([[3, 1, 2], 1])
  for (const ticket of tickets) lines.leave(ticket)
  expect(sizes()).toEqual([0, 0, 0])
  expect([lines.find(a), lines.find(b)]).toEqual([undefined, undefined])
})
