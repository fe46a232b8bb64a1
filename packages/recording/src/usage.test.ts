import { createLimiter, type Decision, memoryStore, type RequestFacts, type Rule } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { storeWithOutages } from "../../core/src/stores/testing/store-with-outages.ts"
import { recordDecisions } from "./record-decisions.ts"
import type { SinkRecord } from "./recorded-decision.ts"

const DAY_MS = 86_400_000
const RULES: readonly Rule[] = [
  { name: "monthly", field: "header:x-user", limit: 40, per: "month", timeZone: "Europe/Berlin" },
  {
    name: "weekly",
    field: "header:x-user",
    limit: 12,
    per: "week",
    timeZone: "Asia/Tokyo",
    counts: "tokens",
  },
  {
    name: "all",
    field: "service",
    limit: 90,
    per: "month",
    timeZone: "UTC",
    anchor: 15,
    cost: 2,
    onStoreFailure: "allow",
  },
  { name: "trial", field: "header:x-user", limit: 9, per: "day", timeZone: "UTC", shadow: true },
  { name: "minute", field: "header:x-user", limit: 20, window: "1 minute" },
]
const USERS = ["ada", "bob", "=eve"]

/** Opens a limiter whose store fails while `isDown`. Its decisions are recorded with a clock that is late. */
function open(lateMs = 0) {
  const clock = manualClock(Date.UTC(2024, 0, 30))
  const state = storeWithOutages(memoryStore({ clock }))
  const limiter = createLimiter({
    ...{ service: "shop", clock, store: state.store, rules: [...RULES], logger: { warn() {}, error() {} } },
    units: { tokens: 1 },
  })
  const records: SinkRecord[] = []
  const recorder = recordDecisions(limiter, (batch) => void records.push(...batch), {
    clock: { now: () => clock.now() - lateMs },
    batchSize: 1,
  })
  return { clock, limiter, records, recorder, state, seen: new Map<string, Sum>() }
}

/** The units that a client has used and was granted. */
type Sum = readonly [used: number, granted: number]

/** Returns the sum of the units in the records, by rule, client and period. Units without the store are left out. */
function sums(records: readonly SinkRecord[]): ReadonlyMap<string, Sum> {
  const sums = new Map<string, Sum>()
  for (const { checks, degraded } of records) {
    for (const { policy, partition, startMs, endMs, taken, added = 0 } of degraded ? [] : checks) {
      const key = JSON.stringify([policy, partition, startMs, endMs])
      const [used, more] = sums.get(key) ?? [0, 0]
      sums.set(key, [used + taken, more + added])
    }
  }
  return sums
}

const requestOf = (user: string): RequestFacts => ({ headers: { "x-user": user } })
const amount = fc.nat(15)
const step = fc.record({
  call: fc.constantFrom(
    "decide",
    "takeUpTo",
    "acquire",
    "refund",
    "settle",
    "reserve",
    "grant",
    "outage",
    "recovery",
  ),
  user: fc.constantFrom(...USERS),
  units: amount,
  tokens: amount,
  of: fc.nat(),
  daysLater: fc.oneof(fc.constant(0), fc.nat(3), fc.nat(20)),
  msLater: fc.oneof(fc.constant(0), fc.nat(DAY_MS)),
})

describe("the sum of the recorded units", () => {
  it("is the counter in the store after each call, whatever was refunded or settled, and whenever", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
        const opened = open()
        const { clock, limiter, state } = opened
        const decisions: Decision[] = []
        for (const { call, user, units, tokens, of, daysLater, msLater } of steps) {
          const request = requestOf(user)
          const earlier = decisions[of % Math.max(1, decisions.length)]
          if (call === "outage" || call === "recovery") state.isDown = call === "outage"
          else if (call === "decide")
            decisions.push(await limiter.decide(request, { units: { requests: units, tokens } }))
          else if (call === "takeUpTo") decisions.push(await limiter.takeUpTo(request, units))
          else if (call === "acquire")
            await limiter.acquire(request, { cost: units, maxWaitMs: 0 }).catch(() => undefined)
          else if (call === "grant") await limiter.grant(request, units + 1).catch(() => undefined)
          else if (earlier === undefined) continue
          else if (call === "refund") await limiter.refund(earlier).catch(() => undefined)
          else if (call === "settle")
            await limiter.settle(earlier, { requests: units, tokens }).catch(() => undefined)
          else await settleElsewhere(limiter, earlier, { requests: units, tokens })
          clock.advance(daysLater * DAY_MS + msLater)
          if (state.isDown) continue
          await compare(opened)
        }
      }),
      { numRuns: 60 },
    )
  })

  it("is the counter at the end of each period, although the process's clock is late and refunds come later", async () => {
    const opened = open(5_000)
    const { clock, limiter, records } = opened
    const decisions: Decision[] = []
    for (let day = 0; day < 400; day++) {
      const decision = await limiter.decide(requestOf(USERS[day % 3] as string), { cost: day % 5 })
      decisions.push(decision)
      if (day % 7 === 0) await limiter.refund(decision)
      if (day % 7 === 1) await limiter.settle(decision, 7)
      if (day % 7 === 2 && day > 40) await limiter.refund(decisions[day - 40] as Decision)
      await compare(opened)
      clock.advance(DAY_MS)
    }
    const { seen } = opened
    expect([...seen.keys()].filter((key) => key.startsWith('["monthly","ada"'))).toHaveLength(15)
    const recorded = sums(records)
    expect(new Map([...seen.keys()].map((key) => [key, recorded.get(key) ?? [0, 0]]))).toEqual(seen)
  })
})

async function settleElsewhere(
  limiter: ReturnType<typeof open>["limiter"],
  decision: Decision,
  used: Readonly<Record<string, number>>,
): Promise<void> {
  try {
    await limiter.settleReservation(limiter.reserve(decision).text, { used })
  } catch {
    // The decision was refused or is settled, or the store is down.
  }
}

/** Compares the records with the counters of all clients in their current periods. */
async function compare({ limiter, records, recorder, seen }: ReturnType<typeof open>): Promise<void> {
  while (recorder.status.waiting > 0) await new Promise(setImmediate)
  const recorded = sums(records)
  for (const user of USERS) {
    for (const { policy, partition, startMs, endMs, used, granted } of await limiter.usage(requestOf(user))) {
      const key = JSON.stringify([policy, partition, startMs, endMs])
      seen.set(key, [used, granted])
      expect([key, recorded.get(key) ?? [0, 0]]).toEqual([key, [used, granted]])
    }
  }
}
