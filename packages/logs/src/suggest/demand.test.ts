import { createReplay } from "@sluice/core/replay"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { LogRecord } from "../reading/log.ts"
import { ClientDemand, type DemandOptions } from "./demand.ts"
import { Refusals } from "./refusals.ts"
import { parseWindow, type WindowLength } from "./window-length.ts"
import { WINDOW_ALGORITHMS } from "./window-peaks.ts"

const WINDOWS = ["1s", "1m", "1h"].map((each) => parseWindow(each) as WindowLength)
const OPTIONS: DemandOptions = {
  by: ["ip"],
  address: {},
  windows: WINDOWS,
  algorithm: "sliding-window",
  groups: [],
  maxClients: 1_000,
}
const ADDRESSES = ["192.0.2.1", "192.0.2.2", "2001:db8:1::7", "2001:db8:1::8", "2001:db8:2::8", "unix:"]
const START_MS = 1_750_000_000_123

type Shape = Partial<LogRecord> & { readonly afterMs: number }

function recordsOf(shapes: readonly Shape[]): LogRecord[] {
  let atMs = START_MS
  return shapes.map(({ afterMs, ...members }, line) => {
    atMs += afterMs
    return { atMs, file: 0, line: line + 1, ...members }
  })
}

const traffic = fc
  .array(
    fc.record({
      afterMs: fc.oneof(fc.constantFrom(0, 0, 0, 1, 999, 1_000, 60_000), fc.nat(2_000), fc.nat(500_000)),
      remoteAddress: fc.constantFrom(...ADDRESSES),
      method: fc.constantFrom("GET", "POST"),
      url: fc.constantFrom("/", "/search?q=1", "/search/", "/login"),
    }),
    { minLength: 1, maxLength: 100 },
  )
  .map(recordsOf)

/** Counts records in the first pass. */
function counted(records: readonly LogRecord[], options: Partial<DemandOptions> = {}): ClientDemand {
  const demand = new ClientDemand({ ...OPTIONS, ...options })
  for (const record of records) demand.offer(record)
  return demand
}

describe("ClientDemand", () => {
  it.each(WINDOW_ALGORITHMS)(
    "predicts which clients a rule with %s refuses, for every limit and match",
    (algorithm) => {
      const match = { path: "/search" }
      fc.assert(
        fc.property(
          traffic,
          fc.nat(2),
          fc.integer({ min: 1, max: 8 }),
          fc.boolean(),
          (records, at, limit, isGroup) => {
            const demand = counted(records, { algorithm, groups: [{ name: "search", match }] })
            const group = demand.groups.find(({ group }) => (group.match !== undefined) === isGroup)
            const window = WINDOWS[at] as WindowLength
            const rule = { field: "ip", limit, window: window.ms, algorithm, ...(isGroup && { match }) }
            const replay = createReplay({ rules: [rule] })
            const refused = new Set<string>()
            let requests = 0
            for (const record of records) {
              const { allowed, checks } = replay.offer(record)
              if (!allowed) refused.add(checks[0]?.partition ?? "")
              if (!allowed) requests++
            }
            expect(group?.curve(at, demand.clients).above(limit).clients ?? 0).toBe(refused.size)
            if (group === undefined) return
            const { clients } = demand
            const refusals = new Refusals([{ group, window: at, limit }], {
              ...OPTIONS,
              algorithm,
              clients,
              largest: new Set(clients.largest(1).map(({ client }) => client)),
            })
            for (const record of records) refusals.offer(record)
            expect(refusals.of(group, at, limit)).toMatchObject({ requests, error: 0 })
          },
        ),
        { numRuns: 300 },
      )
    },
  )

  it("counts clients by any field, and reports which field a log lacks", () => {
    const named = (user: string | undefined) => ({ afterMs: 1, named: { user_id: user } })
    const records = recordsOf([named("ann"), named("ben"), named("ann"), named("ann")])
    const demand = counted(records, { by: ["user_id"] })
    expect(demand.groups[0]?.curve(1, demand.clients).peaks).toEqual([1, 3])
    expect(demand.missing).toEqual([])

    const onlyFields = new Set(["ip", "service"])
    const without = counted(
      records.map((record) => ({ ...record, onlyFields })),
      { by: ["user_id"] },
    )
    expect(without.groups[0]?.requests).toBe(0)
    expect(without.missing).toEqual([{ group: "all", field: "user_id" }])
  })

  it("counts the requests of the whole service for a capacity", () => {
    const capacity = { limit: 2, window: WINDOWS[0] as WindowLength }
    const records = recordsOf(
      Array.from({ length: 5 }, (_, at) => ({ afterMs: 0, remoteAddress: `192.0.2.${at}` })),
    )
    const demand = counted(records, { capacity })
    expect(demand.servicePeak).toBe(5)
    const refusals = new Refusals([], { ...OPTIONS, capacity, clients: demand.clients, largest: new Set() })
    for (const record of records) refusals.offer(record)
    expect(refusals.serviceRefused).toBe(3)
  })

  describe("logins", () => {
    const tries = (count: number, members: Partial<LogRecord>): Shape[] =>
      Array.from({ length: count }, (_, at) => ({
        ...{ afterMs: 100, method: "POST", remoteAddress: `192.0.2.${at % 5}` },
        ...members,
      }))
    const login = { url: "/Login/?next=/", status: 401 }
    const names = (demand: ClientDemand) => demand.groups.map(({ group }) => group.name)

    it("are paths to which many POST requests fail, and count from their first request", () => {
      const records = recordsOf([
        ...tries(30, { ...login, status: 200 }),
        ...tries(10, { ...login, url: "/login" }),
        ...tries(10, { ...login, url: "/login/", status: 422 }),
        ...tries(10, { ...login, url: "/%6Cogin" }),
      ])
      const demand = counted(records)
      expect(names(demand)).toEqual(["all", "POST /login"])
      const group = demand.groups[1]
      expect(group?.group.match).toEqual({ methods: ["POST"], path: "/login" })
      expect([group?.requests, group?.failed, group?.curve(2, demand.clients).highest]).toEqual([60, 30, 12])
    })

    it.each([
      ["failures of one client", tries(50, { ...login, remoteAddress: "192.0.2.9" })],
      ["GET requests", tries(50, { ...login, method: "GET" })],
      ["few failures", tries(19, login)],
      ["a small share of failures", [...tries(20, login), ...tries(400, { ...login, status: 200 })]],
      ["late failures", [...tries(10_000, { ...login, status: 200 }), ...tries(1_000, login)]],
      ["other failures", tries(50, { ...login, status: 404 })],
      ["a path that is a pattern", tries(50, { ...login, url: "/*" })],
    ])("are not found in %s", (_name, shapes) => {
      expect(names(counted(recordsOf(shapes)))).toEqual(["all"])
    })

    it("are not found twice if the rules file contains the path", () => {
      const groups = [{ name: "sign-in", match: { path: "/login" } }]
      expect(names(counted(recordsOf(tries(50, login)), { groups }))).toEqual(["all", "sign-in"])
    })

    it("are found even after a client has requested thousands of invented paths", () => {
      const flood = Array.from({ length: 10_000 }, (_, at) => tries(1, { ...login, url: `/x${at}` })).flat()
      expect(names(counted(recordsOf([...flood, ...tries(50, login)])))).toEqual(["all", "POST /login"])
    })

    it("are bounded in number", () => {
      const records = recordsOf(
        Array.from({ length: 30 }, (_, at) => tries(25, { ...login, url: `/login${at}` })).flat(),
      )
      expect(counted(records).groups).toHaveLength(21)
    })
  })
})
