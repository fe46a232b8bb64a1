import { addressGroup, type LimiterOptions } from "@sluice/core"
import { rateLimit as sluice } from "@sluice/express"
import express, { type Request, type RequestHandler } from "express"
import { ipKeyGenerator, rateLimit as peer } from "express-rate-limit"
import { describe, expect, it } from "vitest"
import { askAndHangUp } from "../../../contracts/adapter/ask.ts"
import { listen } from "../../../contracts/adapter/listen.ts"
import { until } from "../../../servers/until.ts"
import { type App, afterwards, statuses } from "../pairs.ts"
import { as, quiet } from "../requests.ts"
import { appOf } from "./app.ts"

const once = { windowMs: 60_000, limit: 1 }
const minutely = { limit: 1, window: "1 minute" } as const

describe("as the guide on clients states,", () => {
  it("Sluice does not read `trust proxy`", async () => {
    const steps = [as("X-Forwarded-For", "192.0.2.1"), as("X-Forwarded-For", "192.0.2.2")]
    expect(await statuses(appOf(peer(once)), steps)).toEqual([200, 200])
    expect(await statuses(appOf(sluice({ ...minutely, logger: quiet })), steps)).toEqual([200, 429])
    expect(await statuses(appOf(sluice({ ...minutely, trustedProxies: 1 })), steps)).toEqual([200, 200])
  })

  it.each([
    ["a number", 1, 1],
    ["a string", "loopback, 10.0.0.0/8", ["loopback", "10.0.0.0/8"]],
    ["a function", (address: string) => address === "127.0.0.1", undefined],
    ["true", true, undefined],
  ])("each client counts separately if `trust proxy` is %s", async (_what, trusts, trustedProxies) => {
    const from = (list: string) => as("X-Forwarded-For", list)
    const steps = ["192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:DB8::1"].map(from)
    const expected = [200, 429, 200, 200, 429]
    const app = (limiter: RequestHandler): App =>
      express()
        .set("trust proxy", trusts)
        .use(limiter, (_req, res) => void res.send("ok"))
    expect(await statuses(app(peer({ ...once, validate: false })), steps)).toEqual(expected)
    const fields = { client: ({ ip }: Request) => addressGroup(ip) }
    expect(await statuses(app(sluice({ ...minutely, field: "client", fields })), steps)).toEqual(expected)
    if (trustedProxies === undefined) return
    expect(await statuses(app(sluice({ ...minutely, trustedProxies })), steps)).toEqual(expected)
  })

  it("the old library counts each IPv6 /56 network, and Sluice each /64 network", async () => {
    const steps = ["2001:db8:0:100::1", "2001:db8:0:101::1"].map((ip) => as("X-Forwarded-For", ip))
    expect(await statuses(appOf(peer(once)), steps)).toEqual([200, 429])
    expect(await statuses(appOf(sluice({ ...minutely, trustedProxies: 1 })), steps)).toEqual([200, 200])
    const wide = sluice({ ...minutely, trustedProxies: 1, ipv6Prefix: 56 })
    expect(await statuses(appOf(wide), steps)).toEqual([200, 429])
  })

  it("the old library counts preflights, and Sluice does not", async () => {
    const headers = { Origin: "https://example.com", "Access-Control-Request-Method": "GET" }
    const preflight = { path: "/", method: "OPTIONS", headers }
    const steps = [preflight, preflight, "/"]
    expect(await statuses(appOf(peer(once)), steps)).toEqual([200, 429, 429])
    expect(await statuses(appOf(sluice(minutely)), steps)).toEqual([200, 200, 200])
    const all = sluice({ ...minutely, match: { methods: ["OPTIONS", "GET"] } })
    expect(await statuses(appOf(all), steps)).toEqual([200, 429, 429])
  })

  it("a user named like an address shares the address's counter in the old library, but not in Sluice", async () => {
    const steps = ["/", as("X-User", "127.0.0.1")]
    const keyGenerator = (req: Request): string => req.get("x-user") ?? ipKeyGenerator(req.ip ?? "")
    expect(await statuses(appOf(peer({ ...once, keyGenerator })), steps)).toEqual([200, 429])
    const fields = { user: (req: Request) => req.get("x-user") }
    expect(await statuses(appOf(sluice({ ...minutely, field: "user", fields })), steps)).toEqual([200, 200])
    expect(await statuses(appOf(sluice({ ...minutely, field: "user", fields })), ["/", "/"])).toEqual([
      200, 429,
    ])
  })

  it("both libraries await asynchronous callbacks, except that Sluice does not await refundWhen", async () => {
    const steps = [as("X-User", "ann"), as("X-User", "ann"), as("X-User", "bob"), as("X-User", "probe")]
    const user = async (req: Request): Promise<string> => req.get("x-user") ?? ""
    const skip = async (req: Request): Promise<boolean> => (await user(req)) === "probe"
    const limit = async (): Promise<number> => 1
    const old = peer({ ...once, limit, skip, keyGenerator: user })
    expect(await statuses(appOf(old), steps)).toEqual([200, 429, 200, 200])
    const options: LimiterOptions<Request> = { ...minutely, limit, skip, field: "user", fields: { user } }
    expect(await statuses(appOf(sluice(options)), steps)).toEqual([200, 429, 200, 200])
    const async = { ...minutely, refundWhen: async () => true } as unknown as LimiterOptions<Request>
    expect(() => sluice(async)).toThrow(/refundWhen: is an async function/)
  })

  it("a client that hangs up gets its unit back from the old library, but not from Sluice", async () => {
    for (const [limiter, then] of [
      [peer({ ...once, skipFailedRequests: true }), 200],
      [sluice({ ...minutely, refundWhen: (_req, status) => status >= 400 }), 429],
    ] as const) {
      let arrive = (): void => undefined
      const arrived = new Promise<void>((resolve) => {
        arrive = resolve
      })
      let closed = false
      const app = express().use(limiter)
      app.get("/slow", (_req, res) => {
        res.once("close", () => {
          closed = true
        })
        arrive()
      })
      app.get("/", (_req, res) => void res.send("ok"))
      const running = await listen(app)
      afterwards(running.close)
      await askAndHangUp(running.url, "/slow", arrived)
      await until("the server has seen it", () => closed)
      expect((await fetch(running.url)).status).toBe(then)
    }
  })
})
