import { createLimiter, type LimiterOptions, memoryStore, type RequestFacts } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { instrument } from "@sluice/otel"
import { describe, expect, it } from "vitest"
import { methodsOf } from "../../packages/core/src/stores/testing/methods-of.ts"
import { type Metering, startMetering } from "./metering.ts"

/** Returns the facts of a client. Each fact identifies the client, or is chosen by the client. */
const clientNumber = (n: number): RequestFacts => ({
  method: `METHOD-secret-${n}`,
  url: `/orders/secret-${n}?token=secret-${n}`,
  route: "/orders/:id",
  headers: { "x-api-key": `secret-${n}`, cookie: `session=secret-${n}` },
  query: { token: `secret-${n}` },
  params: { id: `secret-${n}` },
  body: { email: `secret-${n}@example.com` },
  remoteAddress: `192.0.2.${n % 200}`,
})

const FIELDS = [
  "ip",
  "method",
  "route",
  "header:x-api-key",
  "query:token",
  "body:email",
  "param:id",
  "cookie:session",
  "user_id",
]
const RULES: LimiterOptions<RequestFacts>["rules"] = [
  ...FIELDS.map((field) => ({ field, limit: 3, window: "1 minute" })),
  { name: "several", field: FIELDS.slice(0, 3), limit: 2, window: "1 minute", shadow: true, notify: [50] },
  { name: "denied", field: "header:x-api-key", limit: 9, window: "1 hour", deny: ["secret-3"] },
]

/** Calls every method, as several clients, once while the store works and once while every call of it fails. */
async function useAll(clients: number): Promise<Metering> {
  const clock = manualClock()
  const inner = memoryStore({ clock })
  let isDown = false
  const limiter = createLimiter<RequestFacts>({
    rules: RULES,
    clock,
    service: "shop",
    logger: { warn() {}, error() {} },
    fields: { user_id: ({ headers }) => String(headers?.["x-api-key"]) },
    store: {
      ...methodsOf(inner),
      take(checks) {
        if (isDown) throw new Error(`no answer for ${JSON.stringify(checks)}`)
        return inner.take(checks)
      },
    },
  })
  const metering = startMetering()
  instrument(limiter, { meterProvider: metering.meterProvider })
  for (const down of [false, true]) {
    isDown = down
    for (let n = 1; n <= clients; n++) {
      const client = clientNumber(n)
      for (let times = 0; times < 4; times++) await limiter.decide(client)
      await limiter.takeUpTo(client, 2)
      await limiter.acquire(client, { maxWaitMs: 0 }).catch(() => undefined)
      await limiter.decide(client, { cost: 50 })
    }
  }
  return metering
}

interface Attribute {
  readonly name: string
  readonly value: unknown
}

async function attributesIn(metering: Metering): Promise<Attribute[]> {
  const points = [...(await metering.collect()).values()].flatMap(({ dataPoints }) => [...dataPoints])
  return points.flatMap((point) => Object.entries(point.attributes).map(([name, value]) => ({ name, value })))
}

/** All possible values of each attribute: Sluice's own names, and the names that the app has given to its rules. */
const KNOWN: Readonly<Record<string, readonly unknown[]>> = {
  "sluice.limiter.name": ["shop"],
  "sluice.policy.name": [
    "ip-1m",
    "method-1m",
    "route-1m",
    "header:x-api-key-1m",
    "query:token-1m",
    "body:email-1m",
    "param:id-1m",
    "cookie:session-1m",
    "user_id-1m",
    "several",
    "denied",
  ],
  "sluice.decision.result": ["admitted", "over_limit", "refused", "shadowed"],
  "sluice.decision.mode": ["normal", "degraded"],
  "sluice.policy.threshold": [50],
  "sluice.operation.name": ["decide", "takeUpTo", "acquire", "hold"],
  "sluice.refusal.reason": ["quota", "penalty", "cost", "denied", "missing-field", "store-failure"],
  "error.type": ["error", "timeout", "unavailable", "invalid-answer"],
}

describe("attributes", () => {
  it("have known names and values, which neither identify clients nor depend on the number of clients", async () => {
    const attributes = await attributesIn(await useAll(5))
    const unknown = attributes.filter(({ name, value }) => !KNOWN[name]?.includes(value))
    expect(unknown).toEqual([])
    // All attributes occurred, except those of a hold or a penalty.
    expect(new Set(attributes.map(({ name }) => name))).toEqual(new Set(Object.keys(KNOWN)))
    expect(new Set(attributes.map(({ value }) => value)).size).toBeGreaterThan(20)
  })

  it("expose nothing about a client in the exported data", async () => {
    const metering = await useAll(5)
    const exported = JSON.stringify([...(await metering.collect()).values()])
    expect(exported).toContain("sluice.policy.decisions")
    expect(exported).not.toMatch(/secret|192\.0\.2|example\.com/)
  })
})
