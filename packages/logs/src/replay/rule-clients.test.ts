import { createReplay, type ReplayRequest } from "@sluice/core/replay"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { RuleClients } from "./rule-clients.ts"

const DAY_MS = 86_400_000
const START_MS = 1_750_000_000_000

function demandOf(cost: number, limit: number) {
  const policy = {
    name: "a",
    counter: "a",
    algorithm: "sliding-window",
    limit,
    windowMs: 60_000,
    align: "epoch",
  } as const
  return { policy, cost }
}

/** Requests of three clients, with steps of up to two windows. */
const traces = fc
  .array(fc.tuple(fc.oneof(fc.constantFrom(0, 1, 999, 1_000, 60_000), fc.nat(70_000)), fc.nat(2)), {
    minLength: 1,
    maxLength: 80,
  })
  .map((list) => {
    let atMs = START_MS
    return list.map(([afterMs, client]) => {
      atMs += afterMs
      return { atMs, client, remoteAddress: `192.0.2.${client}` }
    })
  })

describe("RuleClients", () => {
  it("computes peaks above a limit exactly for the clients that a replay with this limit refuses", () => {
    fc.assert(
      fc.property(traces, fc.integer({ min: 1, max: 12 }), (trace, limit) => {
        const clients = new RuleClients(60_000, false)
        const replay = createReplay({ rules: [{ field: "ip", limit, window: "1 minute" }] })
        const refused = new Set<number>()
        for (const { client, ...request } of trace) {
          // The peak is relative to a limit of 1, so it equals the number of units.
          clients.add(client, request.atMs, demandOf(1, 1))
          if (!replay.offer(request satisfies ReplayRequest).allowed) refused.add(client)
        }
        const above: number[] = []
        let client = 0
        clients.visitAll((peak) => {
          if (peak > limit) above.push(client)
          client++
        })
        const seen = [...new Set(trace.map((request) => request.client))].sort()
        expect(above.map((at) => seen[at])).toEqual([...refused].sort())
      }),
      { numRuns: 500 },
    )
  })

  it("computes the peak of calendar periods exactly, and ignores units of earlier periods", () => {
    const clients = new RuleClients(31 * DAY_MS, false)
    const months = [0, 1, 2, 3, 4].map((month) => Date.UTC(2026, month, 1))
    const add = (atMs: number, cost: number) => {
      const next = months.findIndex((startMs) => startMs > atMs)
      const policy = { ...demandOf(1, 10).policy, periods: months.slice(Math.max(0, next - 2), next + 2) }
      clients.add(0, atMs, { policy, cost })
    }
    add(Date.UTC(2026, 1, 28, 23), 8)
    add(Date.UTC(2026, 2, 1), 7)
    clients.visitAll((peak) => expect(peak).toBe(0.8))
    add(Date.UTC(2026, 2, 31, 23), 2)
    clients.visitAll((peak) => expect(peak).toBe(0.9))
  })

  it("returns the requests, refusals and peak of each refused client", () => {
    const clients = new RuleClients(1_000, false)
    for (const [client, atMs] of [
      [5, START_MS],
      [5, START_MS + 1],
      [5, START_MS + 2],
      [3_000, START_MS + 3],
    ] as const) {
      clients.add(client, atMs, demandOf(2, 4))
      if (atMs !== START_MS) clients.refuse(client, atMs, client === 5)
    }
    expect(clients.seen).toBe(2)
    expect(clients.mostRefused(5)).toEqual([
      {
        client: 5,
        requests: 3,
        refused: 2,
        peak: 1.5,
        firstRefused: START_MS + 1,
        lastRefused: START_MS + 2,
      },
      {
        client: 3_000,
        requests: 1,
        refused: 1,
        peak: 0.5,
        firstRefused: START_MS + 3,
        lastRefused: START_MS + 3,
      },
    ])
  })

  it("returns the clients that were refused most often", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(50), { maxLength: 300 }),
        fc.integer({ min: 1, max: 5 }),
        (refusals, most) => {
          const clients = new RuleClients(1_000, false)
          const counts = new Map<number, number>()
          for (const client of refusals) {
            clients.add(client, START_MS, demandOf(1, 1))
            clients.refuse(client, START_MS, true)
            counts.set(client, (counts.get(client) ?? 0) + 1)
          }
          const sorted = [...counts.values()].sort((one, other) => other - one).slice(0, most)
          expect(clients.mostRefused(most).map(({ refused }) => refused)).toEqual(sorted)
        },
      ),
    )
  })

  it("returns whether a client was refused for its demand", () => {
    const clients = new RuleClients(1_000, false)
    for (const client of [0, 1, 2]) clients.add(client, START_MS, demandOf(1, 4))
    clients.refuse(1, START_MS, false)
    clients.refuse(2, START_MS, true)
    const seen: unknown[] = []
    clients.visitAll((...each) => seen.push(each))
    expect(seen).toEqual([
      [0.25, false, false],
      [0.25, true, false],
      [0.25, true, true],
    ])
  })

  it("uses the level of a bucket as the peak, relative to the capacity of the bucket", () => {
    const clients = new RuleClients(60_000, true)
    const bucket = { policy: { ...demandOf(1, 60).policy, burst: 2 }, cost: 1 }
    // One unit is refilled each second, so 1, 2, 1.5 and 2.5 units are in use.
    for (const afterMs of [0, 0, 1_500, 1_500]) clients.add(0, START_MS + afterMs, bucket)
    clients.visitAll((peak) => expect(peak).toBe(1.25))
  })

  it.each([10, 20, 100, 3])("computes exact peaks under a limit of %d", (limit) => {
    const clients = new RuleClients(60_000, false)
    for (let units = 1; units <= limit + 1; units++) {
      clients.add(0, START_MS, demandOf(1, limit))
      clients.visitAll((peak) => expect(peak).toBe(units / limit))
    }
  })
})
