import { expect, it } from "vitest"
import { StoreUnavailableError } from "../ground/errors.ts"
import { manualClock } from "../ground/manual-clock.ts"
import type { RequestFacts } from "../request/request.ts"
import type { Rule } from "../rules/rule.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import type { Store } from "../stores/store.ts"
import { createLimiter } from "./create-limiter.ts"
import type { LimiterOptions } from "./options/options.ts"

const MONTHLY: Rule = {
  ...{ name: "monthly", field: "header:x-user", limit: 1_000, per: "month", timeZone: "Europe/Berlin" },
  counts: "tokens",
}
const MINUTE: Rule = { name: "minute", field: "header:x-user", limit: 100, window: "1 minute" }
const ADA = { headers: { "x-user": "ada" } }
/** 2026 in Berlin, where summer time begins on 29 March. */
const [MARCH, APRIL, MAY] = ["03-01T00:00+01:00", "04-01T00:00+02:00", "05-01T00:00+02:00"].map((text) =>
  Date.parse(`2026-${text}`),
) as [number, number, number]

function open(rules: readonly Rule[], options: Partial<LimiterOptions<RequestFacts>> = {}) {
  const clock = manualClock(APRIL - 1)
  const store = memoryStore({ clock })
  const given = { clock, store, rules, units: { tokens: 30 }, ...options }
  const limiter = createLimiter(given as LimiterOptions<RequestFacts>)
  return { clock, store, limiter }
}

it("usage() returns what a client has used in the current period of a rule with per", async () => {
  const { clock, limiter } = open([MINUTE, MONTHLY])
  const monthly = {
    policy: "monthly",
    unit: "tokens",
    partition: "ada",
    limit: 1_000,
    granted: 0,
    shadow: false,
  }
  const unused = { ...monthly, used: 0, remaining: 1_000 }
  expect(await limiter.usage(ADA)).toEqual([{ ...unused, startMs: MARCH, endMs: APRIL }])
  const decision = await limiter.decide(ADA)
  await limiter.decide(ADA)
  const used = { ...monthly, startMs: MARCH, endMs: APRIL, used: 60, remaining: 940 }
  expect(await limiter.usage(ADA)).toEqual([used])
  expect(await limiter.usage(limiter.client("monthly", ["ada"]))).toEqual([used])
  await limiter.settle(decision, { tokens: 4 })
  expect(await limiter.usage(ADA)).toEqual([{ ...used, used: 34, remaining: 966 }])
  await limiter.grant(ADA, 500)
  const granted = { ...used, granted: 500, limit: 1_500, used: 34, remaining: 1_466 }
  expect(await limiter.usage(ADA)).toEqual([granted])
  clock.advance(1)
  expect(await limiter.usage(ADA)).toEqual([{ ...unused, startMs: APRIL, endMs: MAY }])
})

it("usage() returns the new period after the client's anchor has changed, with the units so far", async () => {
  let day = 1
  const { clock, limiter } = open([{ ...MONTHLY, anchor: () => day }])
  clock.set(Date.parse("2026-03-10T00:00Z"))
  await limiter.decide(ADA)
  day = 15
  const endMs = Date.parse("2026-03-15T00:00+01:00")
  const startMs = Date.parse("2026-02-15T00:00+01:00")
  expect(await limiter.usage(ADA)).toMatchObject([{ startMs, endMs, used: 30 }])
  clock.set(endMs)
  expect(await limiter.usage(ADA)).toMatchObject([{ startMs: endMs, used: 0 }])
})

it("usage() marks a rule in shadow mode, and leaves out clients that are not counted", async () => {
  const rules = [
    { ...MONTHLY, shadow: true },
    { ...MONTHLY, name: "denied", deny: ["ada"] },
    { ...MONTHLY, name: "allowed", allow: ["ada"] },
  ]
  const { limiter } = open(rules, { skip: ({ method }) => method === "HEAD" })
  expect(await limiter.usage(ADA)).toMatchObject([{ policy: "monthly", shadow: true }])
  expect(await limiter.usage({ ...ADA, method: "HEAD" })).toEqual([])
})

it("usage() rejects rules without per, and clients whose period depends on their requests", async () => {
  const { limiter } = open([MINUTE, MONTHLY, { ...MONTHLY, name: "anchored", anchor: () => 3 }])
  expect(await limiter.usage(ADA, { rules: ["monthly"] })).toHaveLength(1)
  const message = 'rules: contains "minute", which has no calendar period; accepted: rules with per'
  await expect(limiter.usage(ADA, { rules: ["monthly", "minute"] })).rejects.toThrow(message)
  expect(await limiter.usage(limiter.client("minute", ["ada"]))).toEqual([])
  await expect(limiter.usage(ADA, { rules: ["montly"] })).rejects.toThrow("is not the name of a rule")
  await expect(limiter.usage(ADA, { cost: 1 } as never)).rejects.toThrow("is not an option of usage()")
  await expect(limiter.usage(limiter.client("anchored", ["ada"]))).rejects.toThrow(
    "is a function of the request",
  )
})

it("usage() rejects while the store does not respond, because the counts of this process would be too low", async () => {
  const down = () => Promise.reject(new Error("down"))
  const failing = { ...memoryStore(), take: down, read: down, refund() {}, reset() {}, close() {} } as Store
  const { limiter } = open([MONTHLY], { store: failing })
  await expect(limiter.usage(ADA)).rejects.toThrow(StoreUnavailableError)
  const { store } = open([])
  const read: Store["read"] = async (checks) => ({ ...(await store.read(checks)), isDegraded: true })
  const aside = open([MONTHLY], { store: { ...failing, read } as Store }).limiter
  await expect(aside.usage(ADA)).rejects.toThrow("The shared counters do not respond.")
})

it("usage() returns the period that contains the client's count, after its anchor was moved to an earlier day", async () => {
  let anchor = 20
  const rule: Rule = { name: "monthly", field: "header:x-user", limit: 9, per: "month", timeZone: "UTC" }
  const { clock, limiter } = open([{ ...rule, anchor: () => anchor } as Rule])
  clock.set(Date.UTC(2026, 2, 25))
  await limiter.decide(ADA, { cost: 4 })
  anchor = 15
  const period = { startMs: Date.UTC(2026, 2, 15), endMs: Date.UTC(2026, 3, 15) }
  expect(await limiter.usage(ADA)).toMatchObject([{ ...period, used: 4, remaining: 5 }])
  await limiter.decide(ADA)
  expect(await limiter.usage(ADA)).toMatchObject([{ ...period, used: 5, remaining: 4 }])
})
