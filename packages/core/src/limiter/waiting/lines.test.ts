import { describe, expect, it } from "vitest"
import type { Ask } from "../../decision/rule-check.ts"
import type { Policy } from "../../ground/policy.ts"
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

it("whoever is told how long to wait is told a millisecond at least, for a counter for which nobody waits too", () => {
  const lines = new Lines()
  const a = ask("a")
  expect(lines.waitMs(a, 0)).toBe(1)
  const patience = { maxWaitMs: 9_000, maxWaiting: 9, waitsFor: () => true }
  const ticket = new Ticket([a], [a], patience, 0)
  lines.stand(ticket)
  expect(lines.waitMs(a, 0)).toBe(1)
  ticket.step = "sleeping"
  ticket.untilMs = 700.5
  expect([0, 700, 701].map((nowMs) => lines.waitMs(a, nowMs))).toEqual([701, 1, 1])
})

describe("in lines of several counters", () => {
  function setUp() {
    const lines = new Lines()
    const [a, b] = [ask("a"), ask("b")]
    const come = (asks: readonly Ask[]) =>
      new Ticket(asks, asks, { maxWaitMs: 9, maxWaiting: 9, waitsFor: () => true }, 0)
    const enter = (asks: readonly Ask[]) => {
      const ticket = come(asks)
      lines.stand(ticket)
      return ticket
    }
    const standing = (at: Ask) => {
      const tickets: Ticket[] = []
      for (let place = lines.find(at)?.first; place !== undefined; place = place.behind)
        tickets.push(place.who)
      return tickets
    }
    return { lines, a, b, come, enter, standing }
  }

  it("who comes stands only where somebody sleeps, and so nobody finds it in another one", () => {
    const { lines, a, b, enter, standing } = setUp()
    const sleeper = enter([a])
    sleeper.step = "sleeping"
    const ticket = enter([b, a])
    expect([standing(a), lines.find(b)]).toEqual([[sleeper, ticket], undefined])
  })

  it("nobody waits for one who sleeps but came later, nor for itself", () => {
    const { lines, a, b, come, enter, standing } = setUp()
    const early = come([a, b])
    const late = enter([a])
    late.step = "sleeping"
    lines.stand(early)
    expect([standing(a), standing(b)]).toEqual([[early, late], [early]])
    early.step = "sleeping"
    lines.sleep(early, a)
    expect(lines.find(b)).toBeUndefined()
    lines.stand(early)
    expect([standing(a), standing(b)]).toEqual([[early, late], [early]])
  })

  it("who asked in vain goes behind who came earlier in one of them, and all in the order in which they came", () => {
    const { lines, a, b, come, enter, standing } = setUp()
    const early = come([a])
    const stopped = [enter([a, b]), enter([a])]
    for (const ticket of stopped) ticket.step = "asking"
    lines.stand(early)
    expect(standing(a)).toEqual([...stopped, early])
    for (const ticket of stopped) ticket.step = "vain"
    lines.sort(stopped)
    expect(standing(a)).toEqual([early, ...stopped])
  })

  it("who asked in vain keeps its place where nobody behind it came earlier", () => {
    const { lines, a, enter } = setUp()
    const ticket = enter([a])
    enter([a])
    const [place] = ticket.places
    lines.sort([ticket])
    expect(ticket.places).toEqual([place])
    expect(ticket.places[0]).toBe(place)
  })

  it("the line of who has left is forgotten once, and not the one that others stand in since", () => {
    const { lines, a, enter, standing } = setUp()
    const left = enter([a])
    lines.leave(left)
    const ticket = enter([a])
    for (const { line } of left.places) lines.forget(line)
    expect(standing(a)).toEqual([ticket])
  })
})
