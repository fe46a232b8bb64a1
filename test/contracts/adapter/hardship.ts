import { type Decision, memoryStore, type Store } from "@sluice/core"
import { describe, expect } from "vitest"
import { methodsOf } from "../../../packages/core/src/stores/testing/methods-of.ts"
import { askAndHangUp } from "./ask.ts"
import { type Behaves, expectOk, notingRoute, statuses, told } from "./stage.ts"

/** Returns a memory store with a different `take`. */
function storeWith(take: Store["take"], store: Store = memoryStore()): Store {
  return {
    ...methodsOf(store),
    take,
  }
}

const BROKEN: readonly (readonly [what: string, take: () => never])[] = [
  [
    "throws",
    () => {
      throw new Error("The store is gone.")
    },
  ],
  ["does not respond", () => new Promise(() => undefined) as never],
]

/** Registers the behaviors with broken or hostile input, which must not fail a request. */
export function hardship(behaves: Behaves): void {
  for (const [what, take] of BROKEN) {
    describe("a store that is broken", () => {
      behaves(
        `causes degraded decisions without quota headers when it ${what}`,
        async ({ limited, adapter, warnings }) => {
          const decisions: (Decision | undefined)[] = []
          const client = await limited(
            { limit: 2, window: "1 minute", store: storeWith(take), storeTimeoutMs: 1 },
            { routes: [notingRoute(adapter, decisions)] },
          )
          const response = await client("/")
          expectOk(response)
          expect(told(response)).not.toContain("ratelimit")
          expect(decisions).toMatchObject([{ allowed: true, degraded: true }])
          expect(await statuses(client, 2)).toEqual([200, 429])
          expect(warnings).toEqual(["SLUICE_DEGRADED"])
        },
      )

      behaves(`causes a 503 with onStoreFailure "deny" when it ${what}`, async ({ limited }) => {
        let handled = 0
        const client = await limited(
          { limit: 2, window: "1 minute", store: storeWith(take), storeTimeoutMs: 1, onStoreFailure: "deny" },
          { routes: [{ path: "/", handle: () => ({ body: String(++handled) }) }] },
        )
        const { status, headers, body } = await client("/")
        expect(status).toBe(503)
        expect(headers["retry-after"]).toBe("1")
        expect(JSON.parse(body).type).toMatch(/#temporary-reduced-capacity$/)
        expect(handled).toBe(0)
      })
    })
  }

  describe("a client that hangs up before the decision", () => {
    for (const [what, limit] of [
      ["admits it", 5],
      ["refuses it", 1],
    ] as const) {
      behaves(`does not affect other requests when the decision ${what}`, async ({ limited, clock }) => {
        const store = memoryStore({ clock })
        let arrived = () => {}
        const arrival = new Promise<void>((resolve) => {
          arrived = resolve
        })
        let decide = () => {}
        const decided = new Promise<void>((resolve) => {
          decide = resolve
        })
        let asked = 0
        const client = await limited({
          limit,
          window: "1 minute",
          // The client of the second request disconnects.

          store: storeWith(async (checks) => {
            if (++asked === 2) {
              arrived()
              await decided
            }
            return store.take(checks)
          }, store),
          storeTimeoutMs: 60_000,
        })
        expect((await client("/")).status).toBe(200)
        await askAndHangUp(client.url, "/", arrival)
        decide()
        expect((await client("/")).status).toBe(limit === 1 ? 429 : 200)
        // The request of the disconnected client has been counted if it was admitted.
        expect((await client("/")).headers.ratelimit).toBe(
          limit === 1 ? '"ip-1m";r=0;t=61' : '"ip-1m";r=1;t=61',
        )
      })
    }
  })

  describe("what a client sends", () => {
    behaves("may be a long header, cookie or query", async ({ start, base }) => {
      const long = "x".repeat(12_000)
      for (const [field, target, headers] of [
        ["header:x-key", "/", { "X-Key": long }],
        ["cookie:session", "/", { Cookie: `session=${long}` }],
        ["query:key", `/?key=${long}`, {}],
      ] as const) {
        const client = await start({ mounts: [{ ...base, limit: 1, window: "1 minute", field }] })
        expect(await statuses(client, 2, target, { headers })).toEqual([200, 429])
      }
    })

    behaves(
      "may be invalid UTF-8, an invalid cookie or an invalid list of addresses",
      async ({ start, base }) => {
        const bytes = "\xff\xfe\x80"
        for (const [field, headers] of [
          ["header:x-key", { "X-Key": bytes }],
          ["cookie:session", { Cookie: `session=${bytes}%FF; ;;=; __proto__=1` }],
          ["ip", { "X-Forwarded-For": `${bytes}, , "`, Forwarded: 'for="' }],
        ] as const) {
          const client = await start({
            mounts: [{ ...base, limit: 1, window: "1 minute", field, trustedProxies: 2 }],
          })
          expect(await statuses(client, 2, "/", { headers })).toEqual([200, 429])
        }
      },
    )

    behaves("may be an invalid Accept header", async ({ start, base }) => {
      const client = await start({ mounts: [{ ...base, limit: 1, window: "1 minute" }] })
      await client("/")
      for (const accept of [`${"a/b,".repeat(2_000)}c`, ";;,q=\xff/\xfe", "text", ""]) {
        expect((await client("/", { headers: { Accept: accept } })).status).toBe(429)
      }
    })
  })

  describe("a response that was already sent", () => {
    behaves("is left unchanged", async ({ limited, adapter }) => {
      const decisions: unknown[] = []
      const client = await limited(
        {
          limit: 1,
          window: "1 minute",
          onRejected: (request) => {
            decisions.push(adapter.decisionOf(request))
          },
        },
        { answersFirst: { status: 202, body: "first" }, routes: [] },
      )
      for (let i = 0; i < 2; i++) {
        const response = await client("/")
        expect([response.status, response.body]).toEqual([202, "first"])
        expect(told(response)).toEqual([])
      }
      // The response was already sent, so `onRejected` is not called.
      expect(decisions).toEqual([])
    })
  })

  describe("a response that an earlier handler has begun", () => {
    behaves("is ended when the request is refused, with one warning", async ({ limited, warnings }) => {
      const asked: unknown[] = []
      const client = await limited(
        {
          limit: 1,
          window: "1 minute",
          deny: ["127.0.0.1"],
          onRejected: (request) => void asked.push(request),
        },
        { beginsFirst: { status: 202, body: "first" } },
      )
      for (let i = 0; i < 2; i++) {
        const response = await client("/")
        expect([response.status, response.body]).toEqual([202, "first"])
        expect(told(response)).toEqual([])
      }
      expect(warnings).toEqual(["SLUICE_MOUNTED_TOO_LATE"])
      // The app can no longer respond, so `onRejected` is not called.
      expect(asked).toEqual([])
    })
  })

  describe("an error of the app", () => {
    class NotFound extends Error {
      readonly status = 404
      get headers() {
        return { "x-own": "yes" }
      }
    }

    behaves(
      "keeps its status and the headers of its class, and also gets the quota headers",
      async (stage) => {
        const { limited } = stage
        const client = await limited(
          { limit: 5, window: "1 minute" },
          {
            routes: [
              {
                path: "/",
                handle: () => {
                  throw new NotFound("No such thing.")
                },
              },
            ],
          },
        )
        const { status, headers } = await client("/")
        expect(status).toBe(404)
        expect(headers).toMatchObject({ "x-own": "yes", ratelimit: '"ip-1m";r=4;t=61' })
      },
    )

    behaves("that is thrown repeatedly carries no headers from one client to the next", async (stage) => {
      const { start, base } = stage
      const error = Object.assign(new Error("No."), { status: 403, headers: { "x-own": "yes" } })
      const handle = (): never => {
        throw error
      }
      const client = await start({
        routes: [
          { path: "/limited", mounts: [{ ...base, limit: 5, window: "1 minute" }], handle },
          { path: "/", handle },
        ],
      })
      expect(told(await client("/limited")).sort()).toEqual(["ratelimit", "ratelimit-policy"])
      const { status, headers } = await client("/")
      expect(status).toBe(403)
      expect(headers).toHaveProperty("x-own", "yes")
      expect(headers).not.toHaveProperty("ratelimit")
      expect(error.headers).toEqual({ "x-own": "yes" })
    })
  })
}
