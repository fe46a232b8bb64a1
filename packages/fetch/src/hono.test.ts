import { createLimiter, type Decision, InvalidOptionError } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { type Context, Hono } from "hono"
import { cors } from "hono/cors"
import { validator } from "hono/validator"
import { describe, expect, expectTypeOf, it } from "vitest"
import { type RateLimitOptions, rateLimit } from "./hono.ts"

const warnings: string[] = []
const log = ({ code }: { readonly code: string }): void => void warnings.push(code)

/** Returns options for one request per minute and client, with a clock that does not advance. */
function once(more: object = {}): RateLimitOptions {
  warnings.length = 0
  const logger = { warn: log, error: log }
  return { limit: 1, window: "1 minute", clock: manualClock(), logger, ...more } as RateLimitOptions
}

/** Returns the second argument that the server of Hono on Node passes to an app, for a client with this address. */
const from = (remoteAddress?: string): object => ({ incoming: { socket: { remoteAddress } } })

/** Creates an app before its first request, in an earlier task of the event loop. */
async function started(build: (app: Hono) => unknown): Promise<Hono> {
  const app = new Hono()
  app.onError((error, c) => c.text(error.message, 500))
  build(app)
  return app
}

async function statuses(app: Hono, paths: readonly string[], env: object = from("192.0.2.1")) {
  const all: number[] = []
  for (const path of paths) all.push((await app.request(path, {}, env)).status)
  return all
}

describe("the address of a client in Hono", () => {
  it.each<[server: string, envOf: (address: string) => object]>([
    ["Node", from],
    ["Node, in an object of the app", (address) => ({ server: from(address) })],
    ["Bun", (address) => ({ requestIP: () => ({ address }) })],
    ["Bun, in an object of the app", (address) => ({ server: { requestIP: () => ({ address }) } })],
    ["Deno", (hostname) => ({ remoteAddr: { transport: "tcp", hostname, port: 5 } })],
    ["AWS Lambda with a REST API", (sourceIp) => ({ requestContext: { identity: { sourceIp } } })],
    ["AWS Lambda with an HTTP API", (sourceIp) => ({ requestContext: { http: { sourceIp } } })],
  ])("is the connection's on %s", async (_server, envOf) => {
    const app = await started((to) => to.use(rateLimit(once())).get("/", (c) => c.text("ok")))
    const ask = (address: string) => statuses(app, ["/", "/"], envOf(address))
    expect([await ask("192.0.2.1"), await ask("192.0.2.2")]).toEqual([
      [200, 429],
      [200, 429],
    ])
    expect(warnings).toEqual([])
  })

  it("is unknown without the server's argument, so every request fails and no client shares a counter", async () => {
    const app = await started((to) => to.use(rateLimit(once())).get("/", (c) => c.text("ok")))
    for (const env of [undefined, {}, { requestContext: { elb: {} } }]) {
      // Off Cloudflare, a client could have written the header.
      const response = await app.request("/", { headers: { "cf-connecting-ip": "192.0.2.1" } }, env)
      expect([response.status, await response.text()]).toEqual([
        500,
        expect.stringMatching(/clientAddress: is missing.*c\.env has no connection.*\(\) => undefined/s),
      ])
    }
    expect(await statuses(app, ["/", "/"])).toEqual([200, 429])
  })

  it("is not needed by rules that do not count by address", async () => {
    const options = once({ field: "header:x-key", onMissing: "deny" })
    const app = await started((to) => to.use(rateLimit(options)).get("/", (c) => c.text("ok")))
    const ask = async () => (await app.request("/", { headers: { "x-key": "a" } })).status
    expect([await ask(), await ask()]).toEqual([200, 429])
  })

  it("may come from the app's clientAddress, which must be a function", async () => {
    const clientAddress = (c: Context) => c.req.header("x-address")
    const app = await started((to) =>
      to.use(rateLimit(once({ clientAddress }))).get("/", (c) => c.text("ok")),
    )
    const ask = async (address: string) =>
      (await app.request("/", { headers: { "x-address": address } }, from("192.0.2.1"))).status
    expect([await ask("192.0.2.1"), await ask("192.0.2.2"), await ask("192.0.2.1")]).toEqual([200, 200, 429])
    expect(() => rateLimit(once({ clientAddress: "fromNode" }))).toThrow(/clientAddress: is not a function/)
  })
})

describe("a rule in Hono", () => {
  it("reads the route and its parameters in middleware of the whole app", async () => {
    const options = once({ field: ["route", "param:id"], onMissing: "deny" })
    const app = await started((to) => {
      const users = new Hono()
      users.onError((_error, c) => c.text("own", 500))
      users.get("/:id", (c) => c.text(c.req.param("id")))
      to.use(rateLimit(options))
        .route("/users", users)
        .get("/other/:id", (c) => c.text("other"))
      to.get("*", async (_c, next) => next())
    })
    expect(await statuses(app, ["/users/1", "/users/2", "/users/1", "/other/1", "/none/1"])).toEqual([
      ...[200, 200, 429, 200, 400],
    ])
    expect(await (await app.request("/users/7", {}, from())).text()).toBe("7")
  })

  it("reads the body that a validator has accepted", async () => {
    const accepted = validator("json", (value: { user: string }) => value)
    const limit = rateLimit(once({ field: "body:user", onMissing: "deny" }))
    const app = await started((to) => to.post("/", accepted, limit, (c) => c.json(c.req.valid("json"))))
    const ask = async (user: string) => {
      const headers = { "content-type": "application/json" }
      return (await app.request("/", { method: "POST", body: JSON.stringify({ user }), headers })).status
    }
    expect([await ask("ann"), await ask("ben"), await ask("ann")]).toEqual([200, 200, 429])
  })

  it("reads what middleware has set on the context, and the body in a promise", async () => {
    const fields = { team: async (c: Context) => `${c.get("org")}/${(await c.req.json()).team}` }
    const app = await started((to) => {
      to.use(async (c, next) => {
        c.set("org" as never, c.req.header("x-org") as never)
        await next()
      })
      to.post("/", rateLimit(once({ field: "team", fields })), async (c) => c.json(await c.req.json()))
    })
    const ask = async (org: string, team: string) => {
      const init = { method: "POST", body: JSON.stringify({ team }), headers: { "x-org": org } }
      return (await app.request("/", init, from("192.0.2.1"))).status
    }
    expect([await ask("a", "x"), await ask("a", "y"), await ask("b", "x"), await ask("a", "x")]).toEqual([
      ...[200, 200, 200, 429],
    ])
  })
})

describe("a limiter in Hono", () => {
  it("counts a request once that passes the app's middleware and a route's", async () => {
    const limiter = createLimiter<Context>({ limit: 2, window: "1 minute", clock: manualClock() })
    const limit = rateLimit({ limiter })
    const app = await started((to) => to.use("/api/*", limit).get("/api/a", limit, (c) => c.text("ok")))
    expect(await statuses(app, ["/api/a", "/api/a", "/api/a", "/free"])).toEqual([200, 200, 429, 404])
  })

  it.each<[what: string, path: string, status: number]>([
    ["an error of a handler", "/fails", 500],
    ["an error with a status", "/missing", 404],
    ["an unknown route", "/none", 404],
  ])(
    "adds the quota to the response to %s, and passes its status to refundWhen",
    async (_what, path, status) => {
      const statusesTold: number[] = []
      const refundWhen = (_c: Context, told: number) => statusesTold.push(told) > 0
      const app = await started((to) => {
        to.use(rateLimit(once({ limit: 5, refundWhen })))
        to.get("/fails", () => {
          throw new Error("oops")
        })
        to.get("/missing", (c) => c.notFound())
      })
      const response = await app.request(path, {}, from("192.0.2.1"))
      expect([response.status, response.headers.get("ratelimit")]).toEqual([status, '"ip-1m";r=4;t=61'])
      expect(statusesTold).toEqual([status])
    },
  )

  it("passes on a value that is not an Error, after refundWhen has received 500", async () => {
    const told: number[] = []
    const refundWhen = (_c: Context, status: number) => told.push(status) > 0
    const app = await started((to) => {
      to.use(rateLimit(once({ refundWhen })))
      to.get("/", () => Promise.reject("text"))
    })
    await expect(Promise.resolve(app.request("/", {}, from("192.0.2.1")))).rejects.toBe("text")
    expect(told).toEqual([500])
  })

  it("keeps the headers and cookies that the app has set before a refusal", async () => {
    const refusal = Response.redirect("http://shop.example/slow", 303)
    const app = await started((to) => {
      to.use("/cors", cors())
      to.use(async (c, next) => {
        for (const name of ["a", "b"]) c.header("Set-Cookie", `${name}=${c.req.query("n")}`, { append: true })
        await next()
      })
      to.use(rateLimit(once({ limit: 1, headers: false, onRejected: () => refusal })))
      to.get("*", (c) => c.text("ok"))
    })
    await app.request("/?n=1", {}, from("192.0.2.1"))
    for (const [path, n, origin] of [
      ["/", 2, null],
      ["/cors", 3, "*"],
    ] as const) {
      const { status, headers } = await app.request(`${path}?n=${n}`, {}, from("192.0.2.1"))
      expect([status, headers.get("access-control-allow-origin"), headers.getSetCookie()]).toEqual([
        ...[303, origin, [`a=${n}`, `b=${n}`]],
      ])
    }
  })

  it("sends the handler's own response object, because servers send a copy more slowly", async () => {
    const own = new Response("own")
    const app = await started((to) => to.use(rateLimit(once())).get("/", () => own))
    expect(await app.request("/", {}, from("192.0.2.1"))).toBe(own)
    expect(own.headers.get("ratelimit")).toBe('"ip-1m";r=0;t=61')
  })

  it("keeps the permit of a streamed response until its body has ended", async () => {
    const limiter = createLimiter<Context>({ rules: [{ name: "all", field: "service", concurrent: 1 }] })
    const app = await started((to) =>
      to.use(rateLimit({ limiter })).get("/", (c) => c.body(new Blob(["a"]).stream())),
    )
    const response = await app.request("/")
    expect([limiter.status.inFlight, (await app.request("/")).status]).toEqual([1, 429])
    expect([await response.text(), limiter.status.inFlight]).toEqual(["a", 0])
  })

  it("rejects a call without Hono's context", async () => {
    const called = rateLimit(once()) as unknown as (request: object, response: object) => Promise<unknown>
    await expect(called({ url: "/" }, {})).rejects.toThrow(InvalidOptionError)
  })
})

it("the types of the Hono entry include the decision on the context", () => {
  new Hono<{ Bindings: { readonly key: string } }>()
    .use(rateLimit(once()))
    .get("/", rateLimit(once({ name: "inner" })), (c) => {
      expectTypeOf(c.var.rateLimit).toEqualTypeOf<Decision | undefined>()
      expectTypeOf(c.env.key).toEqualTypeOf<string>()
      return c.json({ remaining: c.var.rateLimit?.remaining })
    })
  expect(() => rateLimit(once({ windw: "1 minute" }))).toThrow(/windw/)
})
