import type { Decision, Rejection } from "@sluice/core"
import { parseList } from "structured-headers"
import { describe, expect } from "vitest"
import { type Behaves, expectOk, statuses, told } from "./stage.ts"

const PROBLEM = {
  type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
  title: "Quota Exceeded",
  status: 429,
}

/** Registers the behaviors of the information that clients receive about their quota and about refusals. */
export function telling(behaves: Behaves): void {
  describe("an admitted request", () => {
    behaves("gets headers with the quota and the remaining units", async ({ start, base }) => {
      const client = await start({ mounts: [{ ...base, limit: 3, window: "1 minute" }] })
      const left: unknown[] = []
      for (let i = 0; i < 3; i++) {
        const response = await client("/")
        expectOk(response)
        expect(members(response.headers["ratelimit-policy"])).toEqual({ "ip-1m": { q: 3, w: 60 } })
        left.push(members(response.headers.ratelimit)["ip-1m"]?.r)
        expect(response.headers).not.toHaveProperty("retry-after")
      }
      expect(left).toEqual([2, 1, 0])
    })

    for (const [dialect, headers] of [
      ["draft-11", { "ratelimit-policy": '"ip-1m";q=3;w=60', ratelimit: '"ip-1m";r=2;t=61' }],
      ["next", { "ratelimit-policy": '"ip-1m";q=3;w=60', ratelimit: '"ip-1m";a=2;w=61;c=1' }],
      [
        "triple",
        {
          "ratelimit-limit": "3",
          "ratelimit-remaining": "2",
          "ratelimit-reset": "61",
          "ratelimit-policy": "3;w=60",
        },
      ],
      [
        "legacy",
        {
          "x-ratelimit-limit": "3",
          "x-ratelimit-remaining": "2",
          "x-ratelimit-reset": String(Date.UTC(2024, 0, 1, 0, 1, 1) / 1000),
        },
      ],
      [false, {}],
    ] as const) {
      behaves(`gets the headers of the option headers: ${dialect}`, async ({ start, base }) => {
        const client = await start({ mounts: [{ ...base, limit: 3, window: "1 minute", headers: dialect }] })
        const response = await client("/")
        expectOk(response)
        expect(response.headers).toMatchObject(headers)
        expect(told(response).sort()).toEqual(Object.keys(headers).sort())
      })
    }

    behaves("gets quota headers with a 404", async ({ start, base }) => {
      const client = await start({ mounts: [{ ...base, limit: 3, window: "1 minute" }] })
      const response = await client("/nowhere")
      expect(response.status).toBe(404)
      expect(response.headers.ratelimit).toBe('"ip-1m";r=2;t=61')
    })

    behaves("gets quota headers if its handler fails", async ({ limited }) => {
      const client = await limited(
        { limit: 3, window: "1 minute" },
        {
          routes: [
            {
              path: "/",
              handle: () => {
                throw new Error("The handler has failed.")
              },
            },
          ],
        },
      )
      const response = await client("/")
      expect(response.status).toBe(500)
      expect(response.headers.ratelimit).toBe('"ip-1m";r=2;t=61')
      expect(response.headers["ratelimit-policy"]).toBe('"ip-1m";q=3;w=60')
    })
  })

  describe("a refused request", () => {
    behaves("gets a 429 with Retry-After and a problem document", async ({ limited }) => {
      let handled = 0
      const client = await limited(
        { limit: 1, window: "1 minute" },
        { routes: [{ path: "/", handle: () => ({ body: `handled ${++handled}` }) }] },
      )
      expect((await client("/")).body).toBe("handled 1")
      const response = await client("/")
      expect(response.status).toBe(429)
      expect(response.headers).toMatchObject({
        "retry-after": "61",
        "cache-control": "no-store",
        "content-type": "application/problem+json",
        "content-length": String(response.body.length),
        "ratelimit-policy": '"ip-1m";q=1;w=60',
        ratelimit: '"ip-1m";r=0;t=61',
      })
      expect(response.body).toBe(
        JSON.stringify({
          ...PROBLEM,
          detail: "The quota is used up. Try again in 61 seconds.",
          "violated-policies": ["ip-1m"],
        }),
      )
      expect(handled).toBe(1)
    })

    behaves("gets plain text if it does not accept JSON", async ({ start, base }) => {
      const client = await start({ mounts: [{ ...base, limit: 1, window: "1 minute" }] })
      await client("/")
      const response = await client("/", { headers: { Accept: "text/html, text/plain" } })
      expect(response.status).toBe(429)
      expect(response.headers["content-type"]).toBe("text/plain; charset=utf-8")
      expect(response.body).toBe("Quota Exceeded: ip-1m\nThe quota is used up. Try again in 61 seconds.\n")
    })

    behaves("gets the headers of GET and no body if its method is HEAD", async ({ start, base }) => {
      const client = await start({ mounts: [{ ...base, limit: 1, window: "1 minute" }] })
      await client("/")
      const get = await client("/")
      const head = await client("/", { method: "HEAD" })
      expect(head.status).toBe(429)
      const { date: _get, connection: _kept, "keep-alive": _alive, ...expected } = get.headers
      expect(head.headers).toMatchObject(expected)
      expect(await client.exactly("/", "HEAD")).toEqual({ status: 429, body: "" })
    })

    behaves("gets the app's own answer, and no body if its method is HEAD", async ({ start, base }) => {
      const headers = ["draft-11", { dialect: "legacy", prefix: "X-App-RateLimit" }] as const
      const body = { error: "später" }
      const rejection = { status: 503, body, contentType: "application/vnd.api+json" }
      const client = await start({ mounts: [{ ...base, limit: 1, window: "1 minute", rejection, headers }] })
      expectOk(await client("/"))
      const response = await client("/")
      expect(response).toMatchObject({ status: 503, body: JSON.stringify(body) })
      expect(response.headers).toMatchObject({
        "content-type": "application/vnd.api+json",
        "content-length": String(Buffer.byteLength(response.body)),
        "cache-control": "no-store",
        "retry-after": "61",
        ratelimit: '"ip-1m";r=0;t=61',
        "x-app-ratelimit-limit": "1",
        "x-app-ratelimit-remaining": "0",
      })
      expect(await client.exactly("/", "HEAD")).toEqual({ status: 503, body: "" })
    })

    behaves("gets what the app's function returns for the framework's request", async ({ start, base }) => {
      const rejection = {
        body: (request: object, { status }: Rejection, { policy }: Decision) =>
          `${pathOf(request)}: ${status} by ${policy}`,
      }
      const client = await start({ mounts: [{ ...base, limit: 1, window: "1 minute", rejection }] })
      await client("/a")
      const { body, headers } = await client("/a")
      expect(body).toBe("/a: 429 by ip-1m")
      expect(headers["content-type"]).toBe("text/plain; charset=utf-8")
    })

    behaves("gets a non-ASCII rejection message, with its length in bytes", async ({ start, base }) => {
      const rejectionMessage = "Zu viele Anfragen – bitte später 🙂"
      const client = await start({ mounts: [{ ...base, limit: 1, window: "1 minute", rejectionMessage }] })
      await client("/")
      const response = await client("/")
      expect(JSON.parse(response.body).rejection).toBe(rejectionMessage)
      expect(response.headers["content-length"]).toBe(String(Buffer.byteLength(response.body)))
    })

    behaves("is told to wait for weeks until the next month, and is then admitted", async (stage) => {
      const { limited, clock } = stage
      const client = await limited({ name: "plan", limit: 1, per: "month", headers: ["draft-11", "legacy"] })
      clock.set(Date.UTC(2024, 1, 8))
      expectOk(await client("/"))
      const { status, headers, body } = await client("/")
      const waitS = 22 * 86_400
      expect(status).toBe(429)
      expect(headers).toMatchObject({
        "retry-after": String(waitS),
        "ratelimit-policy": `"plan";q=1;w=${29 * 86_400}`,
        ratelimit: `"plan";r=0;t=${waitS}`,
        "x-ratelimit-reset": String(Date.UTC(2024, 2, 1) / 1_000),
      })
      expect(JSON.parse(body).detail).toBe("The quota is used up. Try again in 22 days.")
      clock.advance((waitS - 1) * 1_000)
      expect((await client("/")).headers["retry-after"]).toBe("1")
      clock.advance(1_000)
      expectOk(await client("/"))
    })

    behaves("is admitted after the wait in Retry-After, and not a second earlier", async (stage) => {
      const { start, base, clock } = stage
      const client = await start({ mounts: [{ ...base, limit: 5, window: "1 minute" }] })
      clock.advance(17_123)
      expect(await statuses(client, 6)).toEqual([200, 200, 200, 200, 200, 429])
      for (let round = 0; round < 10; round++) {
        const { status, headers } = await client("/")
        expect(status).toBe(429)
        const seconds = Number(headers["retry-after"])
        clock.advance((seconds - 1) * 1000)
        expect((await client("/")).status).toBe(429)
        clock.advance(1000)
        expect((await client("/")).status).toBe(200)
        // Use up the limit again, because several units may become available within one second.
        while ((await client("/")).status === 200);
      }
    })
  })
}

/** Returns the names of the members of a structured field, each with its parameters. */
function members(field: string | undefined): Record<string, Record<string, unknown>> {
  return Object.fromEntries(
    parseList(field ?? "").map(([name, parameters]) => [name, Object.fromEntries(parameters)]),
  )
}

/** Returns the path of a request, whose URL is absolute in the fetch API. */
function pathOf(request: object): string {
  // Hono's context contains its request.
  const { url, req } = request as { readonly url?: string; readonly req?: { readonly url: string } }
  return new URL(url ?? `${req?.url}`, "http://shop.example").pathname
}
