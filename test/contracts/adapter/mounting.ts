import { createLimiter, type Decision } from "@sluice/core"
import { describe, expect } from "vitest"
import type { FrameworkRequest } from "./plan.ts"
import { type Behaves, notingRoute, statuses } from "./stage.ts"

/** Registers the behaviors of several mounts through which one request passes. */
export function mounting(behaves: Behaves): void {
  describe("two limiters", () => {
    behaves("send their quotas as lists in the same headers", async ({ start, base }) => {
      const client = await start({
        mounts: [
          { ...base, name: "outer", limit: 5, window: "1 minute" },
          { ...base, name: "inner", limit: 2, window: "1 minute" },
        ],
      })
      const { headers } = await client("/")
      expect(headers["ratelimit-policy"]).toBe('"outer";q=5;w=60, "inner";q=2;w=60')
      expect(headers.ratelimit).toBe('"outer";r=4;t=61, "inner";r=1;t=61')
    })

    behaves("send the stricter quota in headers with a single value", async ({ start, base }) => {
      const options = { ...base, window: "1 minute", headers: "triple" } as const
      const strictInside = await start({
        mounts: [
          { ...options, limit: 5 },
          { ...options, limit: 2 },
        ],
      })
      expect((await strictInside("/")).headers["ratelimit-limit"]).toBe("2")
      const strictOutside = await start({
        mounts: [
          { ...options, limit: 2 },
          { ...options, limit: 5 },
        ],
      })
      expect((await strictOutside("/")).headers["ratelimit-limit"]).toBe("2")
    })

    behaves(
      "send no reset time of the other limiter if the stricter one has none",
      async ({ start, base }) => {
        const options = { ...base, window: "1 minute", headers: "legacy" } as const
        const client = await start({
          mounts: [
            { ...options, limit: 5 },
            { ...options, limit: 2, cost: () => 3 },
          ],
        })
        const { status, headers } = await client("/")
        expect(status).toBe(429)
        expect(headers).toMatchObject({ "x-ratelimit-limit": "2", "x-ratelimit-remaining": "0" })
        expect(headers).not.toHaveProperty("x-ratelimit-reset")
      },
    )

    behaves("whose rules share a name cause one warning", async ({ start, base, warnings }) => {
      const rule = { ...base, window: "1 minute" }
      const client = await start({
        mounts: [
          { ...rule, limit: 5 },
          { ...rule, limit: 2 },
        ],
      })
      expect(await statuses(client, 3)).toEqual([200, 200, 429])
      expect(warnings).toEqual(["SLUICE_SAME_NAME"])
    })

    behaves("leave the stricter decision on the request", async ({ start, base, adapter }) => {
      const decisions: (Decision | undefined)[] = []
      const client = await start({
        mounts: [
          { ...base, name: "strict", limit: 2, window: "1 minute" },
          { ...base, name: "lax", limit: 5, window: "1 minute" },
        ],
        routes: [notingRoute(adapter, decisions)],
      })
      await client("/")
      expect(decisions).toMatchObject([{ policy: "strict", remaining: 1 }])
    })

    behaves(
      "on the app and on a route decide in this order, the second one only on its route",
      async ({ limited, base }) => {
        const client = await limited(
          { name: "app", limit: 4, window: "1 minute" },
          {
            routes: [
              { path: "/" },
              { path: "/login", mounts: [{ ...base, name: "login", limit: 1, window: "1 minute" }] },
            ],
          },
        )
        expect((await client("/login")).headers.ratelimit).toBe('"app";r=3;t=61, "login";r=0;t=61')
        const refused = await client("/login")
        expect(refused.status).toBe(429)
        expect(JSON.parse(refused.body)["violated-policies"]).toEqual(["login"])
        expect((await client("/")).headers.ratelimit).toBe('"app";r=1;t=61')
        // Two mounts make two decisions, so the app's mount has counted the request that the route refused.
        expect(await statuses(client, 2)).toEqual([200, 429])
      },
    )
  })

  describe("one limiter", () => {
    behaves(
      "mounted twice for one route counts each request once, with a warning",
      async ({ start, base, warnings, adapter }) => {
        const limiter = createLimiter<FrameworkRequest>({ ...base, limit: 2, window: "1 minute" })
        const left: unknown[] = []
        const client = await start({
          mounts: [{ limiter }],
          routes: [
            {
              path: "/",
              mounts: [{ limiter }],
              handle: (request) => {
                left.push(adapter.decisionOf(request)?.remaining)
                return {}
              },
            },
          ],
        })
        const first = await client("/")
        expect(first.headers.ratelimit).toBe('"ip-1m";r=1;t=61')
        expect(await statuses(client, 2)).toEqual([200, 429])
        expect(left).toEqual([1, 0])
        expect(warnings).toEqual(["SLUICE_MOUNTED_TWICE"])
      },
    )

    behaves(
      "mounted twice for one route calls refundWhen once for each response",
      async ({ start, base }) => {
        const told: number[] = []
        let settled = () => {}
        const limiter = createLimiter<FrameworkRequest>({
          ...base,
          limit: 2,
          window: "1 minute",
          refundWhen: (_request, status) => {
            told.push(status)
            settled()
            return false
          },
        })
        const client = await start({ mounts: [{ limiter }], routes: [{ path: "/", mounts: [{ limiter }] }] })
        for (let i = 0; i < 2; i++) {
          const done = new Promise<void>((resolve) => {
            settled = resolve
          })
          expect((await client("/")).status).toBe(200)
          await done
        }
        expect(told).toEqual([200, 200])
      },
    )

    behaves("shared by two routes counts their requests together", async ({ start, base, warnings }) => {
      const limiter = createLimiter<FrameworkRequest>({ ...base, limit: 2, window: "1 minute" })
      const client = await start({
        routes: [
          { path: "/a", mounts: [{ limiter }] },
          { path: "/b", mounts: [{ limiter }] },
        ],
      })
      expect((await client("/a")).status).toBe(200)
      expect((await client("/b")).status).toBe(200)
      expect((await client("/a")).status).toBe(429)
      expect((await client("/b")).status).toBe(429)
      expect(warnings).toEqual([])
    })

    behaves("shared by two apps counts their requests together", async ({ start, base }) => {
      const limiter = createLimiter<FrameworkRequest>({ ...base, limit: 2, window: "1 minute" })
      const one = await start({ mounts: [{ limiter }] })
      const other = await start({ mounts: [{ limiter }] })
      expect((await one("/")).status).toBe(200)
      expect((await other("/")).status).toBe(200)
      expect((await one("/")).status).toBe(429)
    })

    behaves("created while a request is handled causes one warning", async ({ start, base, warnings }) => {
      const client = await start({
        routes: [{ path: "/", mountPerRequest: () => ({ ...base, limit: 1, window: "1 minute" }) }],
      })
      expect(await statuses(client, 3)).toEqual([200, 200, 200])
      expect(warnings).toEqual(["SLUICE_CREATED_IN_HANDLER"])
    })

    behaves("can peek at and reset the client that its mount counts", async ({ start, base }) => {
      const limiter = createLimiter<FrameworkRequest>({
        ...base,
        limit: 3,
        window: "1 minute",
        field: ["ip", "query:key"],
        onMissing: "deny",
      })
      const client = await start({
        routes: [
          { path: "/limited", mounts: [{ limiter }] },
          // These requests pass through no mount.
          {
            path: "/left",
            handle: async (request) => ({ body: String((await limiter.peek(request)).remaining) }),
          },
          {
            path: "/forget",
            handle: async (request) => {
              await limiter.reset(request)
              return {}
            },
          },
        ],
      })
      expect(await statuses(client, 2, "/limited?key=a")).toEqual([200, 200])
      expect((await client("/left?key=a")).body).toBe("1")
      expect((await client("/left?key=b")).body).toBe("3")
      expect((await client("/forget?key=a")).status).toBe(200)
      expect((await client("/left?key=a")).body).toBe("3")
    })
  })
}
