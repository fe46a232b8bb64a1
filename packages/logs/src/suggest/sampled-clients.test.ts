import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { examples } from "../../../../test/test-length.ts"
import { GroupDemand } from "./group-demand.ts"
import { LargestClients } from "./largest-clients.ts"
import { SampledClients } from "./sampled-clients.ts"
import { windowsOf } from "./window-length.ts"

/** Shuffles the requests of clients in a fixed way, and counts them in windows of one minute. */
function demandOf(most: number, names: readonly string[]): { clients: SampledClients; demand: GroupDemand } {
  const demand = new GroupDemand({ name: "all" }, "fixed-window", windowsOf(["1m"], "UTC"))
  const clients = new SampledClients(most, (client) => demand.forget(client), 0)
  for (const name of names) demand.add(clients.count(name), 1_750_000_020_000)
  return { clients, demand }
}

/** Returns one name for each request. The first clients send the most requests. */
function requestsOf(run: number, clients: number): string[] {
  const names: string[] = []
  for (let client = 0; client < clients; client++) {
    const requests = client < 20 ? 2_000 - client : client % 100 < 3 ? 30 : 1 + (client % 4)
    for (let i = 0; i < requests; i++) names.push(`run ${run}, client ${client}`)
  }
  let state = run + 1
  for (let at = names.length - 1; at > 0; at--) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    const other = Math.floor((state / 2 ** 32) * (at + 1))
    const [one, swapped] = [names[at] as string, names[other] as string]
    names[at] = swapped
    names[other] = one
  }
  return names
}

describe("SampledClients", () => {
  it("is exact while all clients fit into the table", () => {
    const { clients, demand } = demandOf(3, ["a", "b", "a", "c", "a", "b"])
    expect(clients.factor).toBe(1)
    expect(demand.curve(0, clients).all).toEqual({ clients: 3, error: 0 })
    expect(demand.curve(0, clients).above(1)).toEqual({ clients: 2, error: 0 })
    expect(
      clients.largest(2).map(({ client, count, error }) => [clients.nameOf(client), count, error]),
    ).toEqual([
      ["a", 3, 0],
      ["b", 2, 0],
    ])
  })

  it("stays within the stated error in at least nine of ten samples", () => {
    const runs = examples(10, 20)
    let within = 0
    let bounds = 0
    for (let run = 0; run < runs; run++) {
      const { clients, demand } = demandOf(2_000, requestsOf(run, 20_000))
      expect(clients.factor).toBeGreaterThanOrEqual(8)
      const curve = demand.curve(0, clients)
      // 20 clients with thousands of requests, 600 clients with 30, and other clients with up to 4.
      for (const [estimate, truth] of [
        [curve.all, 20_000],
        [curve.above(3), 5_000 + 600 - 150],
        [curve.above(10), 620],
      ] as const) {
        bounds++
        if (Math.abs(estimate.clients - truth) <= estimate.error) within++
      }
      // All large clients are in the table, and each represents only itself.
      expect(curve.above(1_000).clients).toBe(20)
    }
    expect(within / bounds).toBeGreaterThanOrEqual(0.9)
  })

  it("counts all requests of each sampled client, and stores at most the given number of clients", () => {
    const names = requestsOf(1, 20_000)
    const { clients, demand } = demandOf(2_000, names)
    const counts = new Map<string, number>()
    for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
    let sampled = 0
    for (let client = 0; client < clients.end; client++) {
      if (clients.weightOf(client) !== clients.factor) continue
      sampled++
      expect(demand.peakOf(client, 0)).toBe(counts.get(clients.nameOf(client)))
    }
    expect(sampled).toBeGreaterThan(500)
    expect(clients.end).toBeLessThanOrEqual(2_000 + 1_001)
  })
})

describe("LargestClients", () => {
  it("bounds the number of requests of every client, and contains every client above the smallest count", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(30), { maxLength: 400 }),
        fc.integer({ min: 1, max: 12 }),
        (requests, most) => {
          const largest = new LargestClients(most)
          const counts = new Map<number, number>()
          for (const client of requests) {
            const left = largest.add(client)
            counts.set(client, (counts.get(client) ?? 0) + 1)
            if (left !== undefined) expect(largest.has(left)).toBe(false)
          }
          const { list } = largest
          expect(list.length).toBe(Math.min(most, counts.size))
          for (const { client, count, error } of list) {
            const truth = counts.get(client) as number
            expect(truth).toBeLessThanOrEqual(count)
            expect(truth).toBeGreaterThanOrEqual(count - error)
          }
          const least = list.at(-1)?.count ?? 0
          for (const [client, count] of counts) if (count > least) expect(largest.has(client)).toBe(true)
        },
      ),
    )
  })
})
