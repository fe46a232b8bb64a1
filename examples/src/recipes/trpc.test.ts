import type { AddressInfo } from "node:net"
import { manualClock } from "@sluice/core/testing"
import { createTRPCClient, httpBatchLink, type TRPCClient } from "@trpc/client"
import { createHTTPServer } from "@trpc/server/adapters/standalone"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { createTRPC } from "./trpc.ts"

const clock = manualClock()
let isDown: boolean
let ran: number
let retryAfter: (string | null)[]

function createRouter() {
  const { router, limited } = createTRPC({ clock, trustedProxies: ["loopback"] })
  return router({
    hello: limited.query(() => {
      if (isDown) throw new Error("The database does not respond.")
      ran++
      return "hello"
    }),
  })
}
type Router = ReturnType<typeof createRouter>

let server: ReturnType<typeof createHTTPServer>

beforeEach(async () => {
  clock.resetAll()
  isDown = false
  ran = 0
  retryAfter = []
  server = createHTTPServer({ router: createRouter(), createContext: (context) => context })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
})
afterEach(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

function client(from = "203.0.113.1"): TRPCClient<Router> {
  const { port } = server.address() as AddressInfo
  const link = httpBatchLink({
    url: `http://127.0.0.1:${port}`,
    headers: { "x-forwarded-for": from },
    async fetch(url, init) {
      const response = await fetch(url, init as RequestInit)
      retryAfter.push(response.headers.get("retry-after"))
      return response
    },
  })
  return createTRPCClient<Router>({ links: [link] })
}
const call = async (from?: string): Promise<unknown> =>
  await client(from)
    .hello.query()
    .catch(({ data }) => data)

describe("the tRPC recipe", () => {
  it("refuses the 31st call in a minute with TOO_MANY_REQUESTS and the exact wait", async () => {
    const { hello } = client()
    // One batch is one HTTP request, but each call counts.
    const all = await Promise.allSettled(Array.from({ length: 31 }, () => hello.query()))
    expect(all.filter(({ status }) => status === "fulfilled")).toHaveLength(30)
    expect(ran).toBe(30)

    const refused = { code: "TOO_MANY_REQUESTS", httpStatus: 429, path: "hello", retryAfterMs: 60_001 }
    expect(await call()).toMatchObject(refused)
    expect(retryAfter).toEqual(["61", "61"])
    expect(await call("203.0.113.2")).toBe("hello")

    clock.advance(60_000)
    expect(await call()).toMatchObject({ code: "TOO_MANY_REQUESTS", retryAfterMs: 1 })
    clock.advance(1)
    expect(await call()).toBe("hello")
  })

  it("reports no wait for calls that fail because of a server error", async () => {
    isDown = true
    const failed = await call()
    expect(failed).toMatchObject({ code: "INTERNAL_SERVER_ERROR" })
    expect(failed).not.toHaveProperty("retryAfterMs")
  })
})
