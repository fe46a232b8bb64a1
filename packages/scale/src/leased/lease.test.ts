import type { Policy } from "@sluice/core/stores"
import { describe, expect, it } from "vitest"
import type { Seen } from "../in-front/seen.ts"
import { Lease } from "./lease.ts"

/** T is 1 s. */
const WINDOW: Policy = {
  name: "all",
  counter: "all",
  algorithm: "sliding-window",
  limit: 16_000,
  windowMs: 60_000,
  align: "epoch",
}
const EVEN: Policy = { ...WINDOW, algorithm: "token-bucket" }

function leaseOf(policy: Policy = WINDOW): Lease {
  return new Lease({ policy, partition: "" }, 1_000)
}

/** Returns a reply that was sent and arrived immediately, at the same time of the server. */
function seenAt(ms: number, current: number, startMs = 0): Seen {
  return { state: { startMs, current, previous: 0 }, serverMs: ms, sentMs: ms, arrivedMs: ms }
}

describe("a lease", () => {
  it("holds units of one part only, and refunds units of an earlier part when it gets new units", () => {
    const lease = leaseOf()
    expect(lease.booked(10, seenAt(100, 10))).toEqual([])
    expect(lease.booked(20, seenAt(200, 30))).toEqual([])
    expect(lease.bookings.units).toBe(30)
    // The server's clock was stepped, so it counts in the next window 60 s early.
    expect(lease.booked(5, seenAt(300, 5, 60_000))).toMatchObject([{ units: 30, after: { current: 30 } }])
    expect(lease.bookings.units).toBe(5)
  })

  it("ends T after its latest booking, or with the part", () => {
    const lease = leaseOf()
    lease.booked(10, seenAt(100, 10))
    lease.booked(10, seenAt(300, 20))
    expect(lease.bookings.dueMs).toBe(1_300)
    expect(lease.bookings.expired(1_299, true)).toEqual([])
    expect(lease.bookings.expired(1_300, false)).toEqual([])
    expect(lease.bookings.expired(1_300, true)).toMatchObject([{ units: 20 }])
    lease.booked(10, seenAt(59_500, 10))
    expect(lease.bookings.dueMs).toBe(59_999)
    expect(lease.bookings.expired(59_998, false)).toEqual([])
    expect(lease.bookings.expired(59_999, false)).toMatchObject([{ units: 10 }])
  })

  it("reports the latest reply, and ignores an earlier reply that arrives later", () => {
    const lease = leaseOf()
    lease.booked(10, seenAt(100, 10))
    lease.learn(seenAt(300, 70), 1)
    lease.learn(seenAt(200, 40), 1)
    expect(lease.grant(1, 400)).toMatchObject({
      serverMs: 400,
      counted: { state: { current: 61 }, ageMs: 100 },
    })
  })

  it("of an evenly refilling bucket holds at most 16 bookings, and ends each of them separately", () => {
    const lease = leaseOf(EVEN)
    lease.ask(1_000, 0)
    for (let nth = 0; nth < 15; nth++) lease.booked(2, seenAt(10 * nth, 2 * nth, 10 * nth))
    expect(lease.wanted(150, 0)).toBeGreaterThan(0)
    lease.booked(2, seenAt(150, 32, 150))
    expect(lease.wanted(160, 0)).toBe(0)
    expect(lease.bookings.dueMs).toBe(999)
    // The booking at 0 ms contained 2 units. The other bookings are held longer.
    expect(lease.bookings.expired(1_000, true)).toMatchObject([
      { units: 2, after: { startMs: 0, current: 0 } },
    ])
    expect(lease.bookings.units).toBe(30)
  })

  it("of an evenly refilling bucket spends several bookings for one request", () => {
    const lease = leaseOf(EVEN)
    for (const ms of [0, 10, 20]) lease.booked(5, seenAt(ms, 5, ms))
    const granted = lease.grant(12, 30)
    // The refund uses the oldest level, because less of it is still in use.
    expect(granted.counted).toMatchObject({ taken: 12, after: { startMs: 0 } })
    expect(lease.bookings.units).toBe(3)
    // If units come from several bookings, the store must refund them.
    expect(lease.putBack(granted, 30)).toBe(false)
    expect(lease.bookings.removeAll()).toMatchObject([{ units: 3, after: { startMs: 20 } }])
  })

  it.each([EVEN, { ...EVEN, refill: "periodic" } as const])(
    "of a bucket assigns each grant a separate share of the level, from the bottom up (%o)",
    (policy) => {
      const lease = leaseOf(policy)
      lease.booked(100, seenAt(0, 300))
      const granted = [30, 20].map((units) => lease.grant(units, 10))
      expect(granted.map(({ counted }) => counted.after?.current)).toEqual([230, 250])
      // Units return to the booking only if no units were granted since. Otherwise, the shares would overlap.
      expect(granted.map((one) => lease.putBack(one, 20))).toEqual([false, true])
      expect(lease.grant(5, 20).counted.after?.current).toBe(235)
      expect(lease.bookings.removeAll()).toMatchObject([{ units: 65, after: { current: 300 } }])
    },
  )

  it("requests the demand of the current or the previous second, whichever is larger", () => {
    const lease = leaseOf()
    lease.learn(seenAt(0, 0), 0)
    const ledger: [atMs: number, wanted: number][] = []
    for (const [atMs, cost] of [
      [0, 100],
      [999, 20],
      [1_000, 5],
      [1_999, 5],
      [2_000, 5],
      [5_000, 5],
    ] as const) {
      lease.ask(cost, atMs)
      ledger.push([atMs, lease.wanted(atMs, 0)])
    }
    expect(ledger).toEqual([
      [0, 100],
      [999, 120],
      [1_000, 120],
      [1_999, 120],
      [2_000, 10],
      [5_000, 5],
    ])
  })

  it("is idle when it holds no units and got no request for 2 T", () => {
    const lease = leaseOf()
    lease.ask(1, 0)
    expect([lease.isIdle(1_999), lease.isIdle(2_000)]).toEqual([false, true])
    lease.booked(2, seenAt(0, 2))
    expect(lease.isIdle(2_000)).toBe(false)
    lease.bookings.removeAll()
    lease.isBooking = true
    expect(lease.isIdle(2_000)).toBe(false)
    lease.isBooking = false
    lease.holdOff.refuse({ policy: WINDOW, partition: "", cost: 1, shadow: false }, seenAt(1_995, 16_000))
    expect([lease.isIdle(2_000), lease.isIdle(2_005)]).toEqual([false, true])
  })
})
