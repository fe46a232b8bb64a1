import { createReplay, type ReplayRequest } from "@sluice/core/replay"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { RuleClients } from "./rule-clients.ts"

const START_MS = 1_750_000_000_000

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
  it("has peaks above a limit exactly for the clients that a replay with this limit refuses", () => {
    fc.assert(
      fc.property(traces, fc.integer({ min: 1, max: 12 }), (trace, limit) => {
        const clients = new RuleClients(60_000)
        const replay = createReplay({ rules: [{ field: "ip", limit, window: "1 minute" }] })
        const refused = new Set<number>()
        for (const { client, ...request } of trace) {
          // The peak is relative to a limit of 1, so it is the number of units.
          clients.add(client, request.atMs, 1, 1)
          if (!replay.offer(request satisfies ReplayRequest).allowed) refused.add(client)
        }
        const above: number[] = []
        let client = 0
        clients.forEachPeak((peak) => {
          if (peak > limit) above.push(client)
          client++
        })
        const seen = [...new Set(trace.map((request) => request.client))].sort()
        expect(above.map((at) => seen[at])).toEqual([...refused].sort())
      }),
      { numRuns: 500 },
    )
  })

  it("returns what each refused client did", () => {
    const clients = new RuleClients(1_000)
    for (const [client, atMs] of [
      [5, START_MS],
      [5, START_MS + 1],
      [5, START_MS + 2],
      [3_000, START_MS + 3],
    ] as const) {
      clients.add(client, atMs, 2, 4)
      if (atMs !== START_MS) clients.refuse(client, atMs)
    }
    expect(clients.refused).toEqual([
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
})
