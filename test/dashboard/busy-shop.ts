import { createLimiter, type RequestFacts } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { dashboard } from "@sluice/dashboard"
import { startHttpServer } from "../servers/http-server.ts"

const START = Date.UTC(2026, 8, 14, 14, 55, 40)
const RULES = [
  { name: "per-client", field: "ip", limit: 60, window: "1 minute" },
  { name: "login", field: "ip", limit: 5, window: "1 minute", match: { methods: ["POST"], path: "/login" } },
  { name: "search", field: "ip", limit: 30, window: "1 minute", match: { path: "/search" } },
  { name: "stricter", field: "ip", limit: 45, window: "1 minute", shadow: true },
] as const

/** A server of the dashboard. */
export interface BusyShop {
  readonly url: string
  stop(): Promise<void>
}

/** Serves the dashboard of a shop after five minutes, in which a crawler came, and then attempts to guess passwords. */
export async function serveBusyShop(): Promise<BusyShop> {
  const clock = manualClock(START)
  const limiter = createLimiter<RequestFacts>({ rules: RULES as never, clock, service: "shop" })
  const page = dashboard(limiter, { clock, path: "/limits", keys: "shown" })
  const send = async (remoteAddress: string, times: number, url: string, method = "GET") => {
    for (let i = 0; i < times; i++) await limiter.decide({ remoteAddress, headers: {}, method, url })
  }
  for (let second = 0; second < 300; second++) {
    const visitors = Math.round(14 + 5 * Math.sin(second / 37) + 2 * Math.sin(second / 5))
    for (let i = 0; i < visitors; i++) {
      const visitor = (second * 31 + i * 17) % 220
      await send(`198.51.100.${visitor}`, 1, visitor % 5 === 0 ? "/search" : "/products")
    }
    if (second > 80) await send("203.0.113.7", 3 + Math.round(2 * Math.sin(second / 9)), "/products")
    if (second > 190 && second % 2 === 0) await send("203.0.113.41", 3, "/search")
    for (let i = 0; second > 140 && i < 4; i++)
      await send(`192.0.2.${(second * 3 + i) % 12}`, 1, "/login", "POST")
    clock.advance(1_000)
  }
  const server = await startHttpServer(page)
  return {
    url: `${server.url}/limits/`,
    async stop() {
      page.close()
      await server.close()
      await limiter.close()
    },
  }
}
