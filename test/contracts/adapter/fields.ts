import { createLimiter } from "@sluice/core"
import { describe, expect } from "vitest"
import type { Ask } from "./ask.ts"
import type { FrameworkRequest, RoutePlan } from "./plan.ts"
import { type Behaves, from, statuses } from "./stage.ts"

type Sent = readonly [target: string, how?: Ask]

/** A field, two requests of the same client, and one request of another client. */
interface Row {
  readonly field: string | readonly string[]
  readonly what?: string
  readonly one: Sent
  readonly same: Sent
  readonly other: Sent
}

const get = (target: string, headers: Record<string, string> = {}): Sent => [target, { headers }]
const post = (body: unknown): Sent => [
  "/",
  { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) },
]

const EVERYWHERE: readonly Row[] = [
  {
    field: "ip",
    one: ["/", from("203.0.113.7, 192.0.2.1")],
    same: ["/", from("198.51.100.8, 192.0.2.1")],
    other: ["/", from("192.0.2.1, 203.0.113.7")],
  },
  {
    field: "ip",
    what: "in one IPv6 subnet",
    one: ["/", from("2001:db8::1")],
    same: ["/", from("2001:DB8:0:0:ffff::9")],
    other: ["/", from("2001:db8:0:1::1")],
  },
  {
    field: "header:X-Api-Key",
    one: get("/", { "x-api-key": "k1" }),
    same: get("/?x", { "X-API-KEY": "k1" }),
    other: get("/", { "X-Api-Key": "k2" }),
  },
  { field: "query:key", one: get("/?key=a"), same: get("/?x=1&k%65y=%61"), other: get("/?key=b") },
  {
    field: "body:user.email",
    one: post({ user: { email: "a@example.com" } }),
    same: post({ user: { name: "A", email: "a@example.com" } }),
    other: post({ user: { email: "b@example.com" } }),
  },
  {
    field: "body:account",
    what: "converted to text",
    one: post({ account: 5 }),
    same: post({ account: "5" }),
    other: post({ account: 6 }),
  },
  {
    field: "cookie:session",
    one: get("/", { Cookie: "session=s1" }),
    same: get("/", { Cookie: "theme=dark; session=s1" }),
    other: get("/", { Cookie: "session=s2" }),
  },
  {
    field: "method",
    one: ["/"],
    same: ["/", { method: "HEAD" }],
    other: ["/", { method: "POST" }],
  },
  {
    field: ["ip", "header:x-api-key"],
    what: "in combination",
    one: ["/", { headers: { "X-Forwarded-For": "192.0.2.1", "X-Api-Key": "k" } }],
    same: ["/?x", { headers: { "X-Forwarded-For": "192.0.2.1", "X-Api-Key": "k" } }],
    other: ["/", { headers: { "X-Forwarded-For": "192.0.2.2", "X-Api-Key": "k" } }],
  },
  {
    field: "account",
    what: "from the app's own extractor",
    one: get("/", { "X-Account": "a" }),
    same: get("/?account=b", { "X-Account": "a" }),
    other: get("/", { "X-Account": "b" }),
  },
]

const ON_A_ROUTE: readonly Row[] = [
  {
    field: "param:id",
    one: get("/users/7"),
    same: get("/users/%37?id=8"),
    other: get("/users/8"),
  },
  {
    field: "route",
    one: get("/users/7"),
    same: get("/users/8"),
    other: get("/orders/7"),
  },
]

/** Registers the behaviors of fields, which determine the requests that are counted together. */
export function fields(behaves: Behaves): void {
  describe("a client is identified by", () => {
    for (const { field, what, one, same, other } of EVERYWHERE) {
      behaves([field, what].flat().filter(Boolean).join(" "), async ({ limited, adapter }) => {
        const client = await limited(
          {
            limit: 1,
            window: "1 minute",
            field,
            onMissing: "skip",
            trustedProxies: 1,
            fields: { account: (request) => adapter.headerOf(request, "x-account") },
          },
          { parsesBodies: true, routes: [{ path: "/" }, { path: "/", method: "POST" }] },
        )
        expect((await client(...one)).status).toBe(200)
        expect((await client(...same)).status).toBe(429)
        expect((await client(...other)).status).toBe(200)
        expect((await client(...other)).status).toBe(429)
      })
    }

    for (const { field, one, same, other } of ON_A_ROUTE) {
      behaves(`${field} if the limiter is mounted on the route`, async ({ start, base }) => {
        const limiter = createLimiter<FrameworkRequest>({
          ...base,
          limit: 1,
          window: "1 minute",
          field,
          onMissing: "skip",
        })
        const route = (path: string): RoutePlan => ({ path, mounts: [{ limiter }] })
        const client = await start({ routes: [route("/users/:id"), route("/orders/:id")] })
        expect((await client(...one)).status).toBe(200)
        expect((await client(...same)).status).toBe(429)
        expect((await client(...other)).status).toBe(200)
        expect((await client(...other)).status).toBe(429)
      })
    }

    behaves("an extractor that sees the framework's request", async ({ limited, adapter }) => {
      const seen: object[] = []
      const handled: object[] = []
      const client = await limited(
        {
          limit: 5,
          window: "1 minute",
          field: "account",
          fields: {
            account: (request) => {
              seen.push(request)
              return adapter.headerOf(request, "host")
            },
          },
        },
        {
          routes: [
            {
              path: "/",
              handle: (request) => {
                handled.push(request)
                return {}
              },
            },
          ],
        },
      )
      await client("/")
      expect(seen).toHaveLength(1)
      expect(seen[0]).toBe(handled[0])
    })

    behaves("an address that the client cannot spoof, without trusted proxies", async (stage) => {
      const { start, base, warnings } = stage
      const client = await start({ mounts: [{ ...base, limit: 2, window: "1 minute" }] })
      expect((await client("/", from("192.0.2.1"))).status).toBe(200)
      expect((await client("/", from("192.0.2.2"))).status).toBe(200)
      expect((await client("/", from("192.0.2.3"))).status).toBe(429)
      expect(warnings).toEqual(["SLUICE_FORWARDED_HEADER_IGNORED"])
    })
  })

  describe("a missing field", () => {
    const rule = { limit: 1, window: "1 minute", field: "header:x-api-key", trustedProxies: 1 } as const

    behaves("makes the request count by address", async ({ start, base }) => {
      const client = await start({ mounts: [{ ...base, ...rule, onMissing: "ip" }] })
      expect(await statuses(client, 2, "/", from("192.0.2.1"))).toEqual([200, 429])
      expect(await statuses(client, 2, "/", from("192.0.2.2"))).toEqual([200, 429])
    })

    behaves("makes the request count together with others that lack the field", async ({ start, base }) => {
      const client = await start({ mounts: [{ ...base, ...rule, onMissing: "shared" }] })
      expect(await statuses(client, 1, "/", from("192.0.2.1"))).toEqual([200])
      expect(await statuses(client, 1, "/", from("192.0.2.2"))).toEqual([429])
    })

    behaves("exempts the request from the limit", async ({ start, base }) => {
      const client = await start({ mounts: [{ ...base, ...rule, onMissing: "skip" }] })
      expect(await statuses(client, 3)).toEqual([200, 200, 200])
    })

    behaves("gets a 400 that names the field", async ({ start, base }) => {
      const client = await start({ mounts: [{ ...base, ...rule, onMissing: "deny" }] })
      const { status, headers, body } = await client("/")
      expect(status).toBe(400)
      expect(headers["content-type"]).toBe("application/problem+json")
      expect(headers).not.toHaveProperty("retry-after")
      expect(JSON.parse(body)).toEqual({
        type: "about:blank",
        title: "Bad Request",
        status: 400,
        detail: 'The request must have "header:x-api-key" to be counted.',
      })
      expect((await client("/", { headers: { "X-Api-Key": "k" } })).status).toBe(200)
    })

    behaves("is assumed if a query parameter is repeated or empty", async ({ start, base }) => {
      const client = await start({
        mounts: [{ ...base, limit: 1, window: "1 minute", field: "query:key", onMissing: "deny" }],
      })
      expect((await client("/?key=a&key=b")).status).toBe(400)
      expect((await client("/?key=")).status).toBe(400)
      expect((await client("/?key=a")).status).toBe(200)
    })

    behaves(
      "is assumed for a body that no parser has read, with one warning",
      async ({ limited, warnings }) => {
        const client = await limited(
          { limit: 1, window: "1 minute", field: "body:account", onMissing: "shared" },
          { routes: [{ path: "/", method: "POST" }], parsesBodies: false },
        )
        expect((await client(...post({ account: "a" }))).status).toBe(200)
        expect((await client(...post({ account: "b" }))).status).toBe(429)
        expect(warnings).toEqual(["SLUICE_BODY_NOT_PARSED"])
      },
    )

    behaves("is assumed if one field of a combination is missing", async ({ limited }) => {
      const client = await limited({
        limit: 1,
        window: "1 minute",
        field: ["ip", "header:x-api-key"],
        onMissing: "deny",
      })
      expect((await client("/")).status).toBe(400)
    })
  })
}
