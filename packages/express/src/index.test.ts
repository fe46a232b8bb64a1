import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import {
  createLimiter,
  type Decision,
  InvalidOptionError,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  type RejectionAnswer,
  type RequestFacts,
  type Store,
} from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import express, { type Express, type Request, type RequestHandler, type Response, Router } from "express"
import { afterEach, describe, expect, expectTypeOf, it } from "vitest"
import { laterStore } from "../../core/src/stores/testing/later-store.ts"
import { methodsOf } from "../../core/src/stores/testing/methods-of.ts"
import { type RateLimit, rateLimit } from "./index.ts"

const closing: (() => Promise<void>)[] = []
const servers: Server[] = []

afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** Serves the app, and returns a function that requests a path. */
async function serve(
  app: Express,
): Promise<(path: string, init?: RequestInit) => Promise<globalThis.Response>> {
  const server = createServer(app)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  servers.push(server)
  closing.push(
    () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  const { port } = server.address() as AddressInfo
  return (path, init) => fetch(`http://127.0.0.1:${port}${path}`, init)
}

const warnings: string[] = []
const log = ({ code }: { readonly code: string }): void => {
  warnings.push(code)
}

/** Returns options for one request per minute, with a clock that does not advance. */
function once(more: Partial<LimiterOptions<Request>> = {}): LimiterOptions<Request> {
  warnings.length = 0
  const { limit = 1, window = "1 minute" } = more
  return { clock: manualClock(), logger: { warn: log, error: log }, ...more, limit, window }
}

const ok: RequestHandler = (_req, res) => {
  res.send("ok")
}

async function statuses(
  ask: (path: string) => Promise<globalThis.Response>,
  ...paths: string[]
): Promise<number[]> {
  const all: number[] = []
  for (const path of paths) all.push((await ask(path)).status)
  return all
}

/** Creates a memory store that delays its n-th result until `answer` is called. */
function lateStore(n: number): { readonly store: Store; readonly asked: Promise<void>; answer(): void } {
  const store = memoryStore()
  let answer = () => {}
  let arrive = () => {}
  let asks = 0
  const answered = new Promise<void>((resolve) => {
    answer = resolve
  })
  const asked = new Promise<void>((resolve) => {
    arrive = resolve
  })
  return {
    asked,
    answer,
    store: {
      ...methodsOf(store),
      async take(checks) {
        if (++asks === n) {
          arrive()
          await answered
        }
        return store.take(checks)
      },
    },
  }
}

describe("rateLimit", () => {
  it("throws immediately for an invalid option", () => {
    expect(() => rateLimit({ limit: 0, window: "1 minute" })).toThrow(InvalidOptionError)
    expect(() => rateLimit({ limit: 1, window: "1 minute", windowMs: 60_000 } as never)).toThrow(/windowMs/)
    expect(() => rateLimit({ limiter: {} } as never)).toThrow(/is not a limiter/)
  })

  it("exposes its limiter, which may be shared", async () => {
    const own = rateLimit(once())
    await expect(own.limiter.ready()).resolves.toBeUndefined()
    const limiter = createLimiter<Request>(once())
    expect(rateLimit({ limiter }).limiter).toBe(limiter)
  })

  it("lets the app pass facts to the limiter instead of an Express request", async () => {
    const limiter = createLimiter<Request | RequestFacts>({
      limit: 2,
      window: "1 minute",
      clock: manualClock(),
    })
    const ask = await serve(express().use(rateLimit({ limiter }), ok))
    expect((await limiter.decide({ remoteAddress: "127.0.0.1" })).remaining).toBe(1)
    expect((await limiter.decide({ remoteAddress: "192.0.2.1" })).remaining).toBe(1)
    expect(await statuses(ask, "/", "/")).toEqual([200, 429])
    // An object with only one of these members is not an Express request.
    const facts = { originalUrl: "/", baseUrl: "", remoteAddress: "127.0.0.1" }
    for (const name of ["originalUrl", "baseUrl"] as const) {
      const { [name]: _left, ...others } = facts
      expect((await limiter.peek(others as RequestFacts)).remaining).toBe(0)
    }
  })

  it("lets the app pass a request to the limiter, even without mounting the middleware", async () => {
    const { limiter } = rateLimit(once({ field: ["ip", "route"], onMissing: "deny" }))
    const app = express().get("/:id", async (req, res) => {
      res.sendStatus((await limiter.decide(req)).allowed ? 200 : 429)
    })
    app.get("/of/:id", async (req, res) => {
      res.sendStatus((await limiter.decide(req)).allowed ? 200 : 429)
    })
    expect(await statuses(await serve(app), "/a", "/b", "/of/a", "/of/b")).toEqual([200, 429, 200, 429])
    expect(warnings).toEqual([])
  })

  it("treats the address of a request without a connection as missing", async () => {
    const { limiter } = rateLimit(once({ onMissing: "deny" }))
    const request = { baseUrl: "", originalUrl: "/" } as Request
    expect((await limiter.decide(request)).refusal).toBe("missing-field")
    expect(warnings).toEqual(["SLUICE_ADDRESS_UNKNOWN"])
  })

  it("sends no Content-Length for a 304 without a body", async () => {
    const onRejected = (): RejectionAnswer => ({ status: 304, headers: [], body: "" })
    const ask = await serve(express().use(rateLimit(once({ onRejected })), ok))
    await ask("/")
    const { status, headers } = await ask("/")
    expect([status, headers.has("content-length")]).toEqual([304, false])
  })

  it("matches paths on Node's own server, which does not parse the query", async () => {
    const middleware = rateLimit(once({ match: { path: "/login" } })) as never as (
      req: IncomingMessage,
      res: ServerResponse,
      next: () => void,
    ) => void
    const ask = await serve(((req: IncomingMessage, res: ServerResponse) =>
      middleware(req, res, () => res.end("ok"))) as never)
    expect(await statuses(ask, "/login", "/other", "/login?x=1", "/LOGIN/")).toEqual([200, 200, 429, 429])
  })

  it("creates middleware that throws if it is called with only a request", () => {
    const middleware = rateLimit(once()) as unknown as (req: unknown) => void
    expect(() => middleware({})).toThrow(
      /was called without an Express response, probably by another framework/,
    )
  })

  it("admits or refuses requests synchronously if the store returns its result synchronously", async () => {
    const middleware = rateLimit(once())
    const seen: unknown[] = []
    const app = express()
    app.use((req, res, next) => {
      const nexts: unknown[][] = []
      middleware(req, res, (...args: unknown[]) => {
        nexts.push(args)
      })
      seen.push({ nexts, ended: res.writableEnded })
      if (nexts.length > 0) next()
    })
    app.get("/", ok)
    const ask = await serve(app)
    expect(await statuses(ask, "/", "/")).toEqual([200, 429])
    // `next` is called without arguments, or not at all.
    expect(seen).toEqual([
      { nexts: [[]], ended: false },
      { nexts: [], ended: true },
    ])
  })

  it("adds only its own headers to a refusal", async () => {
    const app = express().disable("x-powered-by").use(rateLimit(once()))
    const ask = await serve(app)
    await ask("/")
    const { headers } = await ask("/")
    expect([...headers.keys()].sort()).toEqual([
      "cache-control",
      "connection",
      "content-length",
      "content-type",
      "date",
      "keep-alive",
      "ratelimit",
      "ratelimit-policy",
      "retry-after",
    ])
    expect(headers.get("content-type")).toBe("application/problem+json")
  })

  it("does not trust an address that the app's `trust proxy` reads from a header", async () => {
    const app = express().set("trust proxy", true).use(rateLimit(once()), ok)
    const ask = await serve(app)
    const as = (address: string) => ask("/", { headers: { "X-Forwarded-For": address } })
    expect((await as("192.0.2.1")).status).toBe(200)
    expect((await as("192.0.2.2")).status).toBe(429)
  })

  it("reads the query with the app's own parser", async () => {
    const app = express().set("query parser", () => ({ key: "always the same" }))
    app.use(rateLimit(once({ field: "query:key", onMissing: "deny" })), ok)
    expect(await statuses(await serve(app), "/?key=a", "/?key=b")).toEqual([200, 429])
  })

  it("parses the query only if a rule needs it", async () => {
    let parsed = 0
    const app = express().set("query parser", () => {
      parsed++
      return {}
    })
    app.use(rateLimit(once({ field: "header:host" })), ok)
    await statuses(await serve(app), "/?key=a", "/?key=a")
    expect(parsed).toBe(0)
  })
})

describe("a path that the app has rewritten before a mount", () => {
  it("is matched, whatever form the request target has", async () => {
    const app = express()
    app.use((req, _res, next) => {
      req.url = req.url.replace("/v1/", "/v2/")
      next()
    })
    app.use("/v2", rateLimit(once({ match: { path: "/v2/login" }, limit: 2 })), ok)
    await serve(app)
    const { port } = (servers.at(-1) as Server).address() as AddressInfo
    const status = (target: string): Promise<number> =>
      new Promise((resolve, reject) => {
        const asked = request({ port, path: target }, (response) => {
          response.resume()
          resolve(response.statusCode ?? 0)
        })
        asked.once("error", reject).end()
      })
    const targets = [
      "/v1/login",
      "http://other.example/v1/login",
      "HTTP://other.example:81/v2/login?x=1",
      "/v1/login?next=http://other.example",
      "/v2/login",
    ]
    const all = []
    for (const target of targets) all.push(await status(target))
    expect(all).toEqual([200, 200, 429, 429, 429])
  })
})

describe("the route field", () => {
  const byRoute = (more: Partial<LimiterOptions<Request>> = {}) =>
    once({ field: "route", onMissing: "deny", ...more })

  it("is the route's pattern with the mount path before it", async () => {
    const limiter = createLimiter<Request>(byRoute())
    const limit = rateLimit({ limiter })
    const users = Router().get("/:id", limit, ok).get("/", limit, ok)
    const orders = Router().get("/:id", limit, ok)
    const app = express().use("/api/users", users).use("/api/orders", orders)
    const paths = ["/api/users/7", "/api/users/8", "/api/users", "/api/orders/7", "/api/users/"]
    expect(await statuses(await serve(app), ...paths)).toEqual([200, 429, 200, 200, 429])
  })

  it("is the same, whether the mount path is requested in upper or lower case", async () => {
    const limiter = createLimiter<Request | RequestFacts>(byRoute() as object as LimiterOptions<unknown>)
    const app = express().use("/api", Router().get("/:id", rateLimit({ limiter }), ok))
    expect(await statuses(await serve(app), "/api/1", "/API/2", "/Api/3")).toEqual([200, 429, 429])
    expect((await limiter.peek({ route: "/api/:id" })).allowed).toBe(false)
  })

  it("is unknown after its router is mounted a second time", async () => {
    const users = Router().get("/:id", rateLimit(byRoute({ limit: 2 })), ok)
    const app = express().use("/a", users).use("/b", users)
    expect(await statuses(await serve(app), "/a/1", "/b/1", "/b/2", "/a/2")).toEqual([200, 400, 400, 400])
  })

  it("is known if the limiter is also mounted elsewhere for all routes", async () => {
    const limit = rateLimit(byRoute())
    const app = express().use("/beside", limit, ok).get("/:id", limit, ok)
    expect(await statuses(await serve(app), "/1", "/2", "/beside/1")).toEqual([200, 429, 400])
  })

  it("is not a value that the app sets itself", async () => {
    const app = express().use((req, _res, next) => {
      req.route = { path: "/made-up" }
      next()
    })
    expect(await statuses(await serve(app.use(rateLimit(byRoute()), ok)), "/")).toEqual([400])
    expect(warnings).toEqual(["SLUICE_ROUTE_UNKNOWN"])
  })

  it("is unknown if the mount has parameters, because a client could choose their values", async () => {
    const login = (limiter: RequestHandler) => Router().get("/login", limiter, ok)
    const inside = express().use("/deep", login(rateLimit(byRoute({ name: "app" }))))
    const app = express()
      .use("/api", Router().use("/:tenant", login(rateLimit(byRoute()))))
      .use("/apps/:tenant", inside)
      .use(["/one", "/:any/two"], login(rateLimit(byRoute({ name: "list" }))))
      .use(/^\/tenant-./, login(rateLimit(byRoute({ name: "expression" }))))
      .use("/plain", login(rateLimit(byRoute({ name: "plain" }))))
    // Even the first request uses its own counter, so that no other route uses this counter later.
    const paths = ["/api/a/login", "/api/a/login", "/api/b/login", "/apps/a/deep/login", "/one/login"]
    const ask = await serve(app)
    expect(await statuses(ask, ...paths, "/tenant-a/login")).toEqual([400, 400, 400, 400, 400, 400])
    expect(warnings).toEqual(Array(4).fill("SLUICE_ROUTE_UNKNOWN"))
    // A sibling route has its own counter.
    expect(await statuses(ask, "/plain/login", "/plain/login")).toEqual([200, 429])
  })

  it("is known in an app mounted at a path, and in a router that a function calls", async () => {
    const inner = express().get("/:id", rateLimit(byRoute()), ok)
    const router = Router().get("/:id", rateLimit(byRoute({ name: "called" })), ok)
    const app = express()
      .use("/inner", inner)
      .use("/called", (req, res, next) => router(req, res, next))
    const paths = ["/inner/1", "/inner/2", "/called/1", "/called/2"]
    expect(await statuses(await serve(app), ...paths)).toEqual([200, 429, 200, 429])
  })

  it("is known if an instrumentation library has wrapped the limiter", async () => {
    const app = express().get("/:id", rateLimit(byRoute()), ok)
    const wrapped: RequestHandler = rateLimit(byRoute({ name: "wrapped" }))
    app.get("/by/:id", (req, res, next) => wrapped(req, res, next), ok)
    app.use("/others", ok)
    for (const { route } of app.router.stack.filter((layer) => layer.route !== undefined)) {
      const [layer] = route?.stack ?? []
      if (layer === undefined) throw new Error("There is no layer.")
      const { handle } = layer
      layer.handle = (req, res, next) => handle(req, res, next)
    }
    expect(await statuses(await serve(app), "/1", "/2", "/by/1", "/by/2")).toEqual([200, 429, 200, 429])
    expect(warnings).toEqual([])
  })

  it("is known in a router that is mounted in itself, and in a router without an app", async () => {
    const limits = ["inside", "alone"].map((name) => rateLimit(byRoute({ name }))) as [RateLimit, RateLimit]
    const router = Router()
    router.use("/again", router).get("/:id", limits[0], ok)
    expect(await statuses(await serve(express().use("/api", router)), "/api/1", "/api/2")).toEqual([200, 429])
    const alone = Router().use(
      "/api",
      Router().get("/:id", limits[1], (_req, res) => void res.end()),
    )
    const server = express()
    const ask = await serve(((req: never, res: never) =>
      alone(req, res, () => undefined)) as never as typeof server)
    expect(await statuses(ask, "/api/1", "/api/2")).toEqual([200, 429])
    expect(warnings).toEqual([])
  })

  it("is not the route of an earlier handler", async () => {
    const limit = rateLimit(byRoute())
    const router = Router().use(limit).get("/own", ok)
    const app = express()
      .all("/{*any}", (_req, _res, next) => next())
      .use(router)
    expect(await statuses(await serve(app), "/own", "/other")).toEqual([400, 400])
    expect(warnings).toEqual(["SLUICE_ROUTE_UNKNOWN"])
  })

  it("is unknown for an array of paths, a regular expression, or outside of a route", async () => {
    const app = express()
    app.get(["/list", "/of"], rateLimit(byRoute()), ok)
    app.get(/^\/expression/, rateLimit(byRoute({ name: "expression" })), ok)
    app.use("/beside", rateLimit(byRoute({ name: "beside" })), ok)
    expect(await statuses(await serve(app), "/list", "/of", "/expression", "/beside")).toEqual([
      400, 400, 400, 400,
    ])
  })
})

describe("an asynchronous decision", () => {
  for (const [what, n, handled] of [
    ["continues an admitted request", 1, ["/late"]],
    ["stops a refused request", 2, ["/"]],
  ] as const) {
    it(`${what} without changing a response that was already sent`, async () => {
      const { store, answer, asked } = lateStore(n)
      const middleware = rateLimit(once({ store, storeTimeoutMs: 60_000 }))
      const decided = new Promise<void>((resolve) => {
        middleware.limiter.on("decision", (_decision, req) => {
          if (req.path === "/late") resolve()
        })
      })
      const went: string[] = []
      const app = express()
      app.use("/late", (_req, res, next) => {
        void asked.then(() => res.status(504).send("too late"))
        next()
      })
      app.use(middleware, (req, res) => {
        went.push(req.path)
        if (!res.headersSent) res.send("ok")
      })
      const ask = await serve(app)
      for (let i = 1; i < n; i++) await ask("/")
      const response = await ask("/late")
      expect([response.status, await response.text()]).toEqual([504, "too late"])
      expect(response.headers.has("ratelimit")).toBe(false)
      answer()
      await decided
      await new Promise(setImmediate)
      expect(went).toEqual(handled)
    })
  }
})

describe("the types of the Express adapter", () => {
  it("include the decision on the request, and declare the framework's request for every option", () => {
    expectTypeOf<Request["rateLimit"]>().toEqualTypeOf<Decision | undefined>()
    expectTypeOf(rateLimit).returns.toExtend<RequestHandler>()
    expectTypeOf(rateLimit).returns.toHaveProperty("limiter").toEqualTypeOf<Limiter<Request>>()
    const middleware = rateLimit({
      limit: (req) => (req.get("x-plan") === "pro" ? 100 : 10),
      window: "1 minute",
      field: "user_id",
      fields: { user_id: (req) => req.get("x-user") },
      cost: (req) => (req.method === "POST" ? 2 : 1),
      skip: (req) => req.path === "/health",
      refundWhen: (req, status) => req.secure && status < 400,
      onRejected: (req, rejection, decision, res) => {
        expectTypeOf(req).toEqualTypeOf<Request>()
        expectTypeOf(decision).toEqualTypeOf<Decision>()
        ;(res as Response).status(rejection.status).end()
      },
    })
    express().use(middleware).get("/", middleware, ok)
    expect(middleware).toBeTypeOf("function")
  })

  it("do not change the types of a route", async () => {
    const middleware = rateLimit(once({ limit: 3 }))
    const app = express().use(express.json())
    app.get("/users/:id", middleware, (req, res) => {
      expectTypeOf(req.params).toEqualTypeOf<{ id: string }>()
      res.send(req.params.id)
    })
    app.post<"/users/:id", { id: string }, string, { email: string }>(
      "/users/:id",
      middleware,
      (req, res) => {
        expectTypeOf(req.body).toEqualTypeOf<{ email: string }>()
        res.send(req.body.email)
      },
    )
    app
      .route("/teams/:team")
      .all(middleware)
      .get([middleware], (req: Request<{ team: string }>, res: Response) => {
        res.send(req.params.team)
      })
    const listed: RequestHandler[] = [middleware]
    app.use(listed).use((req, res, next) => middleware(req, res, next))
    // @ts-expect-error: Node's own request, before it is passed to Express
    const byHand = (req: IncomingMessage, res: ServerResponse) => middleware(req, res, () => undefined)
    expect(byHand).toBeTypeOf("function")
    const ask = await serve(app)
    const texts = [await ask("/users/7"), await ask("/teams/red")].map((response) => response.text())
    expect(await Promise.all(texts)).toEqual(["7", "red"])
  })

  it("reject options that a limiter does not have", () => {
    const wrong = (): unknown[] => [
      // @ts-expect-error: an option that does not exist
      rateLimit({ limit: 1, window: "1 minute", windowMs: 60_000 }),
      // @ts-expect-error: a limiter for requests of another framework
      rateLimit({ limit: 1, window: "1 minute", skip: (ctx: { koa: true }) => ctx.koa }),
      // @ts-expect-error: an algorithm that does not exist
      rateLimit({ limit: 1, window: "1 minute", algorithm: "guess" }),
    ]
    expect(wrong).toThrow()
  })
})

describe("an error that is thrown after an asynchronous decision", () => {
  it.each([
    ["the headers of an admitted request", "RateLimit", {}],
    [
      "the response of onRejected",
      "Content-Length",
      { deny: ["127.0.0.1"], onRejected: async () => ({ status: 429, headers: [], body: "" }) },
    ],
  ] as const)("is passed to the error handler if it comes from %s", async (_what, broken, more) => {
    const app = express()
    app.use((_req, res, next) => {
      res.setHeader = (name) => {
        if (name === broken) throw new Error("broken middleware")
        return res
      }
      next()
    })
    app.use(rateLimit({ ...once({ store: laterStore() }), ...more }), ok)
    app.use((error: Error, _req: Request, res: Response, _next: unknown) => {
      res.end(error.message)
    })
    const ask = await serve(app)
    expect(await (await ask("/", { signal: AbortSignal.timeout(2_000) })).text()).toBe("broken middleware")
  })
})
