import type { Decision } from "@sluice/core"
import { describe, expect } from "vitest"
import { askOnOneConnection } from "./ask.ts"
import { type Behaves, from, notingRoute, statuses, told } from "./stage.ts"

const PREFLIGHT = {
  method: "OPTIONS",
  headers: { Origin: "https://app.example", "Access-Control-Request-Method": "POST" },
}

/** Registers the behaviors that determine which requests count, at what cost, and under which rules. */
export function counting(behaves: Behaves): void {
  describe("the limiter counts", () => {
    behaves("each client separately", async ({ start, base }) => {
      const client = await start({ mounts: [{ ...base, limit: 2, window: "1 minute", trustedProxies: 1 }] })
      expect(await statuses(client, 3, "/", from("192.0.2.1"))).toEqual([200, 200, 429])
      expect(await statuses(client, 3, "/", from("192.0.2.2"))).toEqual([200, 200, 429])
    })

    // Test this only on Linux, because other systems have only one loopback address.
    if (process.platform === "linux") {
      behaves("every request of a connection by the connection's address", async ({ start, base }) => {
        const { url } = await start({ mounts: [{ ...base, limit: 3, window: "1 minute" }] })
        expect(await askOnOneConnection(url, "127.0.0.2", 2)).toEqual([200, 200])
        expect(await askOnOneConnection(url, "127.0.0.3", 2)).toEqual([200, 200])
        expect(await askOnOneConnection(url, "127.0.0.2", 2)).toEqual([200, 429])
      })
    }

    behaves("HEAD and GET requests together", async ({ start, base }) => {
      const client = await start({ mounts: [{ ...base, limit: 2, window: "1 minute" }] })
      expect((await client("/")).status).toBe(200)
      expect((await client("/", { method: "HEAD" })).headers.ratelimit).toContain("r=0")
      expect((await client("/")).status).toBe(429)
    })

    behaves("requests without a route", async ({ start, base }) => {
      const client = await start({ mounts: [{ ...base, limit: 2, window: "1 minute" }] })
      expect(await statuses(client, 3, "/nowhere")).toEqual([404, 404, 429])
      expect((await client("/", { method: "PURGE" })).status).toBe(429)
    })

    behaves("no preflight requests", async ({ start, base }) => {
      const client = await start({ mounts: [{ ...base, limit: 1, window: "1 minute" }] })
      for (let i = 0; i < 3; i++) {
        const response = await client("/", PREFLIGHT)
        expect(response.status).not.toBe(429)
        expect(told(response)).not.toContain("ratelimit")
      }
      expect(await statuses(client, 2)).toEqual([200, 429])
    })

    behaves("OPTIONS requests that are not preflight requests", async ({ start, base }) => {
      const client = await start({ mounts: [{ ...base, limit: 1, window: "1 minute" }] })
      await client("/", { method: "OPTIONS" })
      expect((await client("/", { method: "OPTIONS" })).status).toBe(429)
    })

    behaves("a preflight request with a body, because a handler could read the body", async (stage) => {
      const client = await stage.start({ mounts: [{ ...stage.base, limit: 1, window: "1 minute" }] })
      const guess = { ...PREFLIGHT, body: "password=guess" }
      await client("/", guess)
      expect((await client("/", guess)).status).toBe(429)
    })

    behaves("concurrent requests, and admits exactly the limit", async ({ limited }) => {
      let handled = 0
      const client = await limited(
        { limit: 5, window: "1 minute" },
        { routes: [{ path: "/", handle: () => ({ body: String(++handled) }) }] },
      )
      const responses = await Promise.all(Array.from({ length: 20 }, () => client("/")))
      expect(responses.filter(({ status }) => status === 200)).toHaveLength(5)
      expect(responses.filter(({ status }) => status === 429)).toHaveLength(15)
      expect(handled).toBe(5)
    })

    behaves(
      "requests with a cost from a function of the framework's request",
      async ({ start, base, adapter }) => {
        const cost = (request: object) => Number(adapter.headerOf(request, "x-cost"))
        const client = await start({ mounts: [{ ...base, limit: 5, window: "1 minute", cost }] })
        const costing = (units: string) => client("/", { headers: { "X-Cost": units } })
        expect((await costing("4")).status).toBe(200)
        expect((await costing("2")).status).toBe(429)
        expect((await costing("1")).status).toBe(200)
        expect((await costing("0")).status).toBe(200)
      },
    )

    behaves("no skipped requests", async ({ start, base, adapter }) => {
      const skip = (request: object) => adapter.headerOf(request, "x-internal") === "yes"
      const client = await start({ mounts: [{ ...base, limit: 1, window: "1 minute", skip }] })
      const internal = { headers: { "X-Internal": "yes" } }
      expect(await statuses(client, 3, "/", internal)).toEqual([200, 200, 200])
      expect(told(await client("/", internal))).not.toContain("ratelimit")
      expect(await statuses(client, 2)).toEqual([200, 429])
    })
  })

  describe("several rules", () => {
    const minute = { name: "minute", limit: 2, window: "1 minute", field: "ip" }
    const day = { name: "day", limit: 4, window: "1 day", field: "ip" }

    behaves(
      "are all sent in the headers, and the decision is that of the strictest rule",
      async ({ limited, adapter }) => {
        const decisions: (Decision | undefined)[] = []
        const client = await limited({ rules: [minute, day] }, { routes: [notingRoute(adapter, decisions)] })
        const { headers } = await client("/")
        expect(headers["ratelimit-policy"]).toBe('"minute";q=2;w=60, "day";q=4;w=86400')
        expect(decisions).toMatchObject([{ allowed: true, policy: "minute", limit: 2, remaining: 1 }])
      },
    )

    behaves(
      "refuse no request in shadow mode, and only the app sees the shadow rules",
      async ({ limited, adapter }) => {
        const decisions: (Decision | undefined)[] = []
        const client = await limited(
          { rules: [{ ...minute, limit: 1, shadow: true }, day] },
          { routes: [notingRoute(adapter, decisions)] },
        )
        expect((await client("/")).headers["ratelimit-policy"]).toBe('"day";q=4;w=86400')
        const second = await client("/")
        expect(second.status).toBe(200)
        expect(second.headers.ratelimit).toMatch(/^"day";r=2;t=\d+$/)
        expect(decisions.map((decision) => decision?.shadowed)).toEqual([[], ["minute"]])
      },
    )
  })
}
