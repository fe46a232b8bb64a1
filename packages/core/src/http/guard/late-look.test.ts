import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Decision } from "../../decision/decision.ts"
import { manualClock } from "../../ground/clock.ts"
import { decisionOn } from "../../limiter/mount-decision.ts"
import { HEADER_DIALECTS } from "../../limiter/options/answer-options.ts"
import type { LimiterOptions } from "../../limiter/options/options.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import type { Store } from "../../stores/store.ts"
import { createGuard } from "./create-guard.ts"
import type { Outcome } from "./mount-outcome.ts"

const QUIET = { warn() {}, error() {} }

/** The same store, of which the limiter does not know that it answers for itself: each of its answers is a decision at once. */
function another(store: Store): Store {
  return {
    take: (requests) => store.take(requests),
    peek: (requests) => store.peek(requests),
    refund: (refunds) => store.refund(refunds),
    reset: (keys) => store.reset(keys),
    close: () => store.close(),
  }
}

/** What requests come to by a guard on such a store. */
async function opened(options: LimiterOptions<object>, storeOf: (store: Store) => Store) {
  const clock = manualClock()
  const store = storeOf(memoryStore({ clock }))
  const guard = createGuard<object>({ ...options, store, clock, logger: QUIET })
  await Promise.resolve()
  /** Express and Koa look at the decision before they set the headers. */
  const ask = (remoteAddress: string, method = "GET", looksFirst = false, accept = "*/*") => {
    const request = {}
    const outcome = guard.check({ remoteAddress, method, headers: { accept } }, request) as Outcome
    if (looksFirst) decisionOn(request)
    const { headers, removed, rejection } = outcome
    return { request, headers, removed, rejection }
  }
  return { ask, clock }
}

const ALGORITHMS = [
  { algorithm: "sliding-window" },
  { algorithm: "sliding-window", buckets: 6 },
  { algorithm: "sliding-window-strict" },
  { algorithm: "sliding-log" },
  { algorithm: "fixed-window" },
  { algorithm: "fixed-window", align: "first-hit" },
  { algorithm: "token-bucket", burst: 5 },
  { algorithm: "token-bucket", refill: "periodic" },
] as const

const options = fc
  .record({
    counted: fc.constantFrom(...ALGORITHMS),
    limit: fc.integer({ min: 1, max: 6 }),
    cost: fc.integer({ min: 1, max: 7 }),
    headers: fc.constantFrom(...HEADER_DIALECTS, false as const),
    more: fc.constantFrom(
      {},
      {},
      { throttle: { kind: "soft", percent: 100 } },
      { throttle: { kind: "elastic", ceiling: 7, signal: () => true } },
      { throttle: { kind: "elastic", ceiling: 7, signal: () => false } },
      { penalty: { refusals: 2, within: "10s", for: "30s" } },
      { shadow: true },
      { deny: ["192.0.2.1"] },
      { allow: ["192.0.2.1"] },
      { rejectionMessage: "later" },
      { rejectionMessage: "exhausted-daily-limit" },
      { countRejected: true },
      { rules: "two" },
    ),
  })
  .map(({ counted, more, cost, ...rest }): LimiterOptions<object> => {
    // A constant that never fits is refused at the start.
    const units = cost === 1 ? 1 : () => cost
    const { limit, headers } = rest
    const rule = { window: "10s", limit, ...counted }
    // Of two rules each request is for one.
    const rules = ["GET", "PUT"].map((method) => ({
      ...rule,
      name: method,
      field: "ip",
      match: { methods: [method] },
    }))
    return (
      "rules" in more ? { rules, headers, cost: units } : { cost: units, headers, ...rule, ...more }
    ) as LimiterOptions<object>
  })

const steps = fc.array(
  fc.record({
    client: fc.constantFrom("192.0.2.1", "192.0.2.2"),
    method: fc.constantFrom("GET", "PUT"),
    looksFirst: fc.boolean(),
    accept: fc.constantFrom("*/*", "*/*", "text/plain"),
    afterMs: fc.constantFrom(0, 1, 999, 2_500, 10_000, 25_000, -500),
  }),
  { minLength: 1, maxLength: 25 },
)

describe("a decision that nobody has looked at", () => {
  it("is the one that is made at once on any other store, and so are its headers", async () => {
    await fc.assert(
      fc.asyncProperty(options, steps, async (rules, requests) => {
        const [late, soon] = [await opened(rules, (store) => store), await opened(rules, another)]
        const told = ({ ask, clock }: typeof late) =>
          requests.map(({ client, method, looksFirst, accept, afterMs }) => {
            clock.advance(afterMs)
            return ask(client, method, looksFirst, accept)
          })
        const [asked, expected] = [told(late), told(soon)]
        const plain = ({ request, ...rest }: (typeof asked)[number]) => ({
          ...rest,
          decision: decisionOn(request),
        })
        // Only now, when time has passed and the counters have changed.
        expect(asked.map(plain)).toEqual(expected.map(plain))
      }),
      { numRuns: 100 },
    )
  })

  it("is one decision, whoever looks at it and when", async () => {
    const { ask } = await opened({ limit: 5, window: "1m" }, (store) => store)
    const { request } = ask("192.0.2.1")
    const decision = decisionOn(request) as Decision
    expect(decisionOn(request)).toBe(decision)
    expect(Object.keys(decision)).toContain("remaining")
    expect({ ...decision }).toMatchObject({ allowed: true, remaining: 4, policy: "ip-1m" })
  })
})
