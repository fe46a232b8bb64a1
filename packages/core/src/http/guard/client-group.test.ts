import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Decision } from "../../decision/decision.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import { createLimiter } from "../../limiter/create-limiter.ts"
import type { LimiterSettings } from "../../limiter/options/options.ts"
import { addressGroup } from "../../request/client-group.ts"
import type { RequestFacts } from "../../request/request.ts"
import { createGuard } from "./create-guard.ts"

const ALICE = "192.0.2.1"
const BOB = "192.0.2.2"

/** Creates a limiter of 9 per minute by the client's address, and collects its warnings. */
async function limiter(more: Omit<LimiterSettings<object>, "limit" | "window"> = {}) {
  const codes: string[] = []
  const logger = { warn: ({ code }: { code?: string }) => codes.push(code ?? ""), error() {} }
  const guard = createGuard<object>({ clock: manualClock(), logger, limit: 9, window: "1m", ...more })
  await Promise.resolve()
  /** Returns the units that the request's client has left. */
  const left = (facts: RequestFacts): number => {
    const { decision } = guard.check(facts, {}) as { readonly decision: Decision }
    return decision.allowed ? decision.remaining : Number.NaN
  }
  return { left, codes }
}

describe("the client of a connection", () => {
  it("is remembered from its first request, even if the socket later has no address", async () => {
    const { left, codes } = await limiter()
    const keepsAddress = {}
    expect(left({ keepsAddress, remoteAddress: ALICE })).toBe(8)
    expect(left({ keepsAddress, remoteAddress: undefined })).toBe(7)
    expect(left({ remoteAddress: ALICE })).toBe(6)
    expect(codes).toEqual([])
  })

  it("is read again at each request until its socket has an address", async () => {
    const { left } = await limiter()
    const keepsAddress = {}
    expect(left({ keepsAddress, remoteAddress: undefined })).toBe(8)
    expect(left({ keepsAddress, remoteAddress: ALICE })).toBe(8)
    expect(left({ keepsAddress, remoteAddress: ALICE })).toBe(7)
  })

  it("is counted separately from the client of another connection", async () => {
    const { left } = await limiter()
    expect(left({ keepsAddress: {}, remoteAddress: ALICE })).toBe(8)
    expect(left({ keepsAddress: {}, remoteAddress: BOB })).toBe(8)
    expect(left({ keepsAddress: {}, remoteAddress: ALICE })).toBe(7)
  })

  it("is grouped according to the ipv6Prefix of each limiter", async () => {
    const [subscribers, devices] = [await limiter(), await limiter({ ipv6Prefix: 128 })]
    const [phone, laptop] = [
      { keepsAddress: {}, remoteAddress: "2001:db8::1" },
      { keepsAddress: {}, remoteAddress: "2001:db8::2" },
    ]
    expect([subscribers.left(phone), devices.left(phone)]).toEqual([8, 8])
    expect([subscribers.left(laptop), devices.left(laptop)]).toEqual([7, 8])
    expect([subscribers.left(phone), devices.left(phone)]).toEqual([6, 7])
  })

  it("is read from a trusted proxy's header for each request", async () => {
    const { left } = await limiter({ trustedProxies: 1 })
    const from = (client: string): RequestFacts => ({
      keepsAddress: proxy,
      remoteAddress: "10.0.0.1",
      headers: { "x-forwarded-for": client },
    })
    const proxy = {}
    expect([left(from(ALICE)), left(from(BOB)), left(from(ALICE))]).toEqual([8, 8, 7])
  })

  it("is read again if the app sets a new address on its socket for each request", async () => {
    const { left } = await limiter()
    const socket = { remoteAddress: "" }
    const from = (remoteAddress: string): RequestFacts => {
      socket.remoteAddress = remoteAddress
      return { keepsAddress: socket, remoteAddress }
    }
    expect([left(from(ALICE)), left(from(BOB)), left(from(ALICE))]).toEqual([8, 8, 7])
  })

  it.each([
    ["null", null],
    ["a string", "socket"],
    ["a number", 7],
    ["frozen", Object.freeze({})],
  ])("is read again for each request if the connection object is %s", async (_what, connection) => {
    const { left, codes } = await limiter()
    const keepsAddress = connection as object
    expect(left({ keepsAddress, remoteAddress: ALICE })).toBe(8)
    expect(left({ keepsAddress, remoteAddress: ALICE })).toBe(7)
    expect(left({ keepsAddress, remoteAddress: BOB })).toBe(8)
    expect(codes).toEqual([])
  })

  it("causes one warning about a possible proxy if it sends forwarded headers", async () => {
    const { left, codes } = await limiter()
    left({ keepsAddress: {}, remoteAddress: ALICE, headers: {} })
    expect(codes).toEqual([])
    left({ keepsAddress: {}, remoteAddress: ALICE, headers: { "x-forwarded-for": BOB } })
    left({ keepsAddress: {}, remoteAddress: ALICE, headers: { "x-forwarded-for": BOB } })
    expect(codes).toEqual(["SLUICE_FORWARDED_HEADER_IGNORED"])
  })
})

it.each([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["::ffff:c000:207", "192.0.2.7"],
  ["2001:db8:1:2::7", "2001:db8:1:2::/64"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["fe80::1%eth0", "fe80::/64"],
  ["192.0.2.7:51234", "192.0.2.7"],
  ["[2001:db8:1:2::7]:443", "2001:db8:1:2::/64"],
  ["[2001:db8:1:2::7]", "2001:db8:1:2::/64"],
  ["192.0.2.7, 198.51.100.1", undefined],
  ["unknown", undefined],
  ["", undefined],
  [undefined, undefined],
])("addressGroup turns %j into %j by default", (address, group) => {
  expect(addressGroup(address)).toBe(group)
})

it("addressGroup returns the partition of the field ip, whatever the spelling of an address", async () => {
  const rule = { limit: 1_000_000, window: "1 minute" }
  const limiter = createLimiter<RequestFacts>({
    rules: [
      { name: "ip", field: "ip", ...rule },
      { name: "group", field: "group", ...rule },
    ],
    fields: { group: ({ remoteAddress }) => addressGroup(remoteAddress) },
  })
  let partitions: string[] = []
  limiter.on("decision", (_decision, _request, { counters }) => {
    partitions = counters.map(({ partition }) => partition)
  })
  const spelled = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.ipV6().map((address) => address.toUpperCase()),
    fc.ipV6().map((address) => `${address}%eth0`),
    fc.ipV4().map((address) => `::ffff:${address}`),
    fc.ipV4().map((address) => `0:0:0:0:0:FFFF:${address}`),
    fc.ipV4().map((address) => `64:ff9b::${address}`),
    fc.stringMatching(/^[0-9a-f:.]{0,12}$/).filter((text) => !/^[^:]*:[^:]*$/.test(text)),
  )
  await fc.assert(
    fc.asyncProperty(spelled, async (remoteAddress) => {
      await limiter.decide({ remoteAddress })
      expect(partitions[1]?.replace(/^@ip:/, "")).toBe(partitions[0])
    }),
  )
  await limiter.close()
})
