import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import {
  createLimiter,
  type Decision,
  InvalidOptionError,
  type Limiter,
  type LimiterOptions,
  type OnRejected,
  type RequestFacts,
} from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import Koa, { type Context, type Middleware } from "koa"
import { afterEach, describe, expect, expectTypeOf, it } from "vitest"
import { rateLimit } from "./index.ts"

const closing: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** Serves an app with these middlewares, and returns a function that requests a path. */
async function serve(
  ...middlewares: Middleware[]
): Promise<(path: string, init?: RequestInit) => Promise<globalThis.Response>> {
  const app = new Koa()
  // By default, Koa prints errors that a handler throws.
  app.on("error", () => undefined)
  for (const middleware of middlewares) app.use(middleware)
  const server = createServer(app.callback())
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  closing.push(
    () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  const { port } = server.address() as AddressInfo
  return (path, init) => fetch(`http://127.0.0.1:${port}${path}`, { redirect: "manual", ...init })
}

const warnings: string[] = []
const log = ({ code }: { readonly code: string }): void => {
  warnings.push(code)
}

/** Returns options for one request per minute, with a clock that does not advance. */
function once(more: Partial<LimiterOptions<Context>> = {}): LimiterOptions<Context> {
  warnings.length = 0
  const { limit = 1, window = "1 minute" } = more
  return { clock: manualClock(), logger: { warn: log, error: log }, ...more, limit, window }
}

const ok: Middleware = (ctx) => {
  ctx.body = "ok"
}

async function statuses(
  ask: (path: string) => Promise<globalThis.Response>,
  ...paths: string[]
): Promise<number[]> {
  const all: number[] = []
  for (const path of paths) all.push((await ask(path)).status)
  return all
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
    const limiter = createLimiter<Context>(once())
    expect(rateLimit({ limiter }).limiter).toBe(limiter)
  })

  it("lets the app pass facts to the limiter instead of a Koa context", async () => {
    const limiter = createLimiter<Context | RequestFacts>({
      limit: 2,
      window: "1 minute",
      clock: manualClock(),
    })
    const ask = await serve(rateLimit({ limiter }), ok)
    expect((await limiter.decide({ remoteAddress: "127.0.0.1" })).remaining).toBe(1)
    expect((await limiter.decide({ remoteAddress: "192.0.2.1" })).remaining).toBe(1)
    expect(await statuses(ask, "/", "/")).toEqual([200, 429])
    // An object with only one of these members is not a context.
    const facts = { originalUrl: "/", req: undefined, remoteAddress: "127.0.0.1" }
    for (const name of ["originalUrl", "req"] as const) {
      const { [name]: _left, ...others } = facts
      expect((await limiter.peek(others as RequestFacts)).remaining).toBe(0)
    }
  })

  it("lets the app pass a context to the limiter, even without mounting the middleware", async () => {
    const { limiter } = rateLimit(once({ field: ["ip", "route"], onMissing: "deny" }))
    const ask = await serve(async (ctx) => {
      // Routers store the pattern here.
      ctx._matchedRoute = ctx.path
      ctx.status = (await limiter.decide(ctx)).allowed ? 200 : 429
    })
    expect(await statuses(ask, "/a", "/a", "/b")).toEqual([200, 429, 200])
  })

  it("treats the address of a context without a connection as missing", async () => {
    const { limiter } = rateLimit(once({ onMissing: "deny" }))
    const context = { req: {}, originalUrl: "/" } as unknown as Context
    expect((await limiter.decide(context)).refusal).toBe("missing-field")
    expect(warnings).toEqual(["SLUICE_ADDRESS_UNKNOWN"])
  })

  it("calls the next middleware synchronously if the store returns its result synchronously", async () => {
    const middleware = rateLimit(once())
    const turns: string[] = []
    const ask = await serve(async (ctx, next) => {
      const done = middleware(ctx, () => {
        turns.push("next")
        return next()
      })
      turns.push("after")
      await done
    }, ok)
    expect(await statuses(ask, "/", "/")).toEqual([200, 429])
    expect(turns).toEqual(["next", "after", "after"])
  })

  it("waits for the middleware that follows it", async () => {
    const order: string[] = []
    const ask = await serve(
      async (_ctx, next) => {
        await next()
        order.push("outer")
      },
      rateLimit(once()),
      async (ctx) => {
        await new Promise(setImmediate)
        order.push("inner")
        ctx.body = "ok"
      },
    )
    expect(await (await ask("/")).text()).toBe("ok")
    expect(order).toEqual(["inner", "outer"])
  })

  it("refuses without throwing, so that the middleware before it can read the response", async () => {
    const seen: unknown[] = []
    const ask = await serve(
      async (ctx, next) => {
        await next()
        seen.push(ctx.status)
        ctx.set("Access-Control-Allow-Origin", "*")
      },
      rateLimit(once()),
      ok,
    )
    await ask("/")
    const { status, headers } = await ask("/")
    expect(status).toBe(429)
    expect(headers.get("access-control-allow-origin")).toBe("*")
    expect(seen).toEqual([200, 429])
  })

  it("refuses a request with its own response, even if the app has already set a body", async () => {
    const ask = await serve((ctx, next) => {
      ctx.body = { about: "to be answered" }
      return next()
    }, rateLimit(once()))
    await ask("/")
    const refused = await ask("/")
    expect(refused.status).toBe(429)
    expect(refused.headers.get("content-type")).toBe("application/problem+json")
    expect(refused.headers.get("content-length")).toBe(String((await refused.text()).length))
  })

  it("does not trust an address that the app's `proxy` setting reads from a header", async () => {
    const ask = await serve(
      (ctx, next) => {
        ctx.app.proxy = true
        return next()
      },
      rateLimit(once()),
      ok,
    )
    const as = (address: string) => ask("/", { headers: { "X-Forwarded-For": address } })
    expect((await as("192.0.2.1")).status).toBe(200)
    expect((await as("192.0.2.2")).status).toBe(429)
  })

  it("reads the query that the app has changed", async () => {
    const ask = await serve(
      (ctx, next) => {
        ctx.query = { key: "always the same" }
        return next()
      },
      rateLimit(once({ field: "query:key", onMissing: "deny" })),
      ok,
    )
    expect(await statuses(ask, "/?key=a", "/?key=b")).toEqual([200, 429])
  })

  it("does not treat a regular expression as a route", async () => {
    const as =
      (route: string | RegExp): Middleware =>
      (ctx, next) => {
        // Routers store the pattern here.
        ctx._matchedRoute = route
        return next()
      }
    const byRoute = once({ field: "route", onMissing: "deny" })
    expect(await statuses(await serve(as("/users/:id"), rateLimit(byRoute), ok), "/")).toEqual([200])
    const other = once({ field: "route", onMissing: "deny" })
    expect(await statuses(await serve(as(/^\/users/), rateLimit(other), ok), "/")).toEqual([400])
    expect(warnings).toEqual(["SLUICE_ROUTE_UNKNOWN"])
  })

  it("does not treat the removal of a prefix by a mount as a rewrite", async () => {
    // Mounts as koa-mount does: the context keeps the prefix of the innermost mount, but its path is restored.
    const mount =
      (prefix: string, inside: Middleware): Middleware =>
      async (ctx, next) => {
        const before = ctx.path
        if (!before.startsWith(prefix)) return await next()
        ctx.mountPath = prefix
        ctx.path = before.slice(prefix.length) || "/"
        await inside(ctx, async () => {
          ctx.path = before
          await next()
          ctx.path = before.slice(prefix.length) || "/"
        })
        ctx.path = before
      }
    const byPath = (path: string) => rateLimit(once({ name: path, match: { path } }))
    const rewrite: Middleware = (ctx, next) => {
      ctx.url = ctx.url.replace("/admin/en/", "/").replace("/admin/x", "/x/")
      return next()
    }
    const rewriteEmpty: Middleware = (ctx, next) => {
      ctx.url = ctx.url.replace("/undefined/", "/")
      return next()
    }
    for (const cut of ["/b/login", "/login", "/"]) {
      const nested = await serve(mount("/a", mount("/b", byPath(cut))), ok)
      for (const target of ["/a/b/login", "/a/b/login/", "/a/b", "/a/b/", "/a/b?x", "/a/b/?x"]) {
        expect([cut, target, ...(await statuses(nested, target, target))]).toEqual([cut, target, 200, 200])
      }
    }
    const unmounted = await serve(rewriteEmpty, byPath("/login"), ok)
    expect(await statuses(unmounted, "/undefined/login", "/undefined/login")).toEqual([200, 429])
    const inside = await serve(mount("/a", mount("/b", byPath("/a/b"))), ok)
    expect(await statuses(inside, "/a/b", "/a/b?x=1")).toEqual([200, 429])
    const after = await serve(
      mount("/admin", (_ctx, next) => next()),
      rewrite,
      byPath("/login"),
      ok,
    )
    expect(await statuses(after, "/admin/en/login", "/admin/en/login?x=1")).toEqual([200, 429])
    const withSlash = await serve(
      mount("/admin", (_ctx, next) => next()),
      rewrite,
      byPath("/x"),
      ok,
    )
    expect(await statuses(withSlash, "/admin/x", "/admin/x")).toEqual([200, 429])
  })

  it("does not change a response that the app sends without Koa", async () => {
    let went = 0
    const ask = await serve(
      (ctx, next) => {
        ctx.respond = false
        ctx.res.statusCode = 200
        setImmediate(() => ctx.res.end("taken over"))
        return next()
      },
      rateLimit(once()),
      () => {
        went++
      },
    )
    for (let i = 0; i < 2; i++) {
      const response = await ask("/")
      expect([response.status, await response.text()]).toEqual([200, "taken over"])
      expect(response.headers.has("ratelimit")).toBe(false)
    }
    // The second request is still refused.
    expect(went).toBe(1)
  })
})

describe("an error that is thrown after the limiter", () => {
  const failing =
    (error: unknown): Middleware =>
    () => {
      throw error
    }

  it("results in a response with all quotas, even if the app sets its own onerror", async () => {
    const seen: unknown[] = []
    const own: Middleware = (ctx, next) => {
      const { onerror } = ctx
      ctx.onerror = (error) => {
        if (error) seen.push(error.message)
        onerror.call(ctx, error)
      }
      return next()
    }
    const [outer, inner] = [once({ name: "outer", limit: 5 }), once({ name: "inner", limit: 2 })]
    const told = '"outer";r=4;t=61, "inner";r=1;t=61'
    const failure = failing(new Error("No."))
    for (const middlewares of [
      [own, rateLimit(outer), rateLimit(inner), failure],
      [rateLimit(outer), own, rateLimit(inner), failure],
      [rateLimit(outer), rateLimit(inner), own, failure],
    ]) {
      const { status, headers } = await (await serve(...middlewares))("/")
      expect([status, headers.get("ratelimit")]).toEqual([500, told])
    }
    expect(seen).toEqual(["No.", "No.", "No."])
  })

  it("is handled by a function that all requests share", async () => {
    const waiting = new Set<unknown>()
    const limits = [once({ limit: 5 }), once({ limit: 5, name: "inner" })].map(rateLimit)
    const ask = await serve(...limits, (ctx) => {
      waiting.add(ctx.onerror)
      ctx.body = ""
    })
    for (const path of ["/", "/", "/"]) await (await ask(path)).text()
    expect(waiting.size).toBe(1)
  })

  it("results in a response without the headers that an inner mount has removed", async () => {
    const ask = await serve(
      rateLimit(once({ name: "outer", limit: 5, headers: "legacy" })),
      rateLimit(once({ name: "inner", limit: 2 })),
      failing(new Error("No.")),
    )
    const { headers } = await ask("/")
    expect(headers.get("ratelimit")).toBe('"inner";r=1;t=61')
    expect(headers.has("x-ratelimit-limit")).toBe(false)
  })

  it("results in a response without the app's headers, as always in Koa", async () => {
    const ask = await serve(rateLimit(once()), (ctx) => {
      ctx.set({ "X-Own": "yes", ETag: '"1"' })
      throw new Error("No.")
    })
    const { status, headers } = await ask("/")
    expect(status).toBe(500)
    expect([...headers.keys()].sort()).toEqual([
      ...["connection", "content-length", "content-type", "date", "keep-alive"],
      ...["ratelimit", "ratelimit-policy"],
    ])
  })

  it("leaves the response object unchanged", async () => {
    let after: unknown
    const ask = await serve(
      (ctx, next) => {
        const { removeHeader } = ctx.res
        ctx.app.once("error", (_error, { res }: Context) => {
          res.once("finish", () => {
            after = res.removeHeader === removeHeader
          })
        })
        return next()
      },
      rateLimit(once()),
      failing(new Error("No.")),
    )
    await ask("/")
    expect(after).toBe(true)
  })

  it("is passed to the middleware before the limiter as the same object", async () => {
    const error = new Error("No.")
    let caught: unknown
    const ask = await serve(
      async (ctx, next) => {
        try {
          await next()
        } catch (thrown) {
          caught = thrown
          ctx.status = 418
        }
      },
      rateLimit(once()),
      failing(error),
    )
    const { status, headers } = await ask("/")
    expect(status).toBe(418)
    expect(caught).toBe(error)
    expect(headers.get("ratelimit")).toBe('"ip-1m";r=0;t=61')
  })

  for (const [what, error] of [
    ["is frozen", Object.freeze(Object.assign(new Error("No."), { status: 500 }))],
    ["is a string", "No."],
    ["is null", null],
  ] as const) {
    it(`may be a value that ${what}`, async () => {
      let caught: unknown = "nothing was thrown"
      const ask = await serve(
        async (_ctx, next) => {
          try {
            await next()
          } catch (thrown) {
            caught = thrown
          }
        },
        rateLimit(once()),
        failing(error),
      )
      expect((await ask("/")).headers.get("ratelimit")).toBe('"ip-1m";r=0;t=61')
      expect(caught).toBe(error)
    })
  }
})

describe("onRejected", () => {
  it("sends the context's response and status if it returns false", async () => {
    const onRejected: OnRejected<Context> = (ctx) => {
      ctx.status = 404
      return false
    }
    const ask = await serve(rateLimit(once({ onRejected })), ok)
    await ask("/")
    const response = await ask("/")
    expect([response.status, await response.text()]).toEqual([404, "Not Found"])
    expect(response.headers.get("retry-after")).toBe("61")
  })

  const rows: readonly (readonly [string, (ctx: Context) => void, number, string])[] = [
    ["with a body", (ctx) => Object.assign(ctx, { body: "own" }), 200, "own"],
    ["with a body and a status", (ctx) => Object.assign(ctx, { body: "own", status: 404 }), 404, "own"],
    ["with a status", (ctx) => Object.assign(ctx, { status: 402 }), 402, "Payment Required"],
    ["with a redirect", (ctx) => ctx.redirect("/slow"), 302, "Redirecting to"],
    [
      "without Koa",
      (ctx) => {
        ctx.respond = false
        ctx.res.statusCode = 420
        ctx.res.end("raw")
      },
      420,
      "raw",
    ],
    [
      "without Koa, even if ctx.respond is not set",
      (ctx) => {
        ctx.res.statusCode = 420
        ctx.res.end("raw")
      },
      420,
      "raw",
    ],
  ]
  for (const [how, reply, status, body] of rows) {
    it(`can send its own response ${how}`, async () => {
      const onRejected: OnRejected<Context> = (ctx, _rejection, _decision, response) => {
        expect(response).toBe(ctx)
        reply(ctx)
      }
      const ask = await serve(rateLimit(once({ onRejected })), ok)
      await ask("/")
      const response = await ask("/")
      expect(response.status).toBe(status)
      expect(await response.text()).toContain(body)
      expect(response.headers.get("content-type")).not.toBe("application/problem+json")
      expect(warnings).toEqual([])
    })
  }
})

describe("the types of the Koa adapter", () => {
  it("include the decision on the state, and declare the framework's context for every option", () => {
    expectTypeOf<Context["state"]["rateLimit"]>().toEqualTypeOf<Decision | undefined>()
    expectTypeOf(rateLimit).returns.toExtend<Middleware>()
    expectTypeOf(rateLimit).returns.toHaveProperty("limiter").toEqualTypeOf<Limiter<Context>>()
    const middleware = rateLimit({
      limit: (ctx) => (ctx.get("x-plan") === "pro" ? 100 : 10),
      window: "1 minute",
      field: "user_id",
      fields: { user_id: (ctx) => ctx.get("x-user") },
      cost: (ctx) => (ctx.method === "POST" ? 2 : 1),
      skip: (ctx) => ctx.path === "/health",
      refundWhen: (ctx, status) => ctx.secure && status < 400,
      onRejected: (ctx, rejection, decision) => {
        expectTypeOf(ctx).toEqualTypeOf<Context>()
        expectTypeOf(decision).toEqualTypeOf<Decision>()
        ctx.status = rejection.status
      },
    })
    new Koa().use(middleware)
    // The middleware also fits an app with its own state type.
    new Koa<{ user: string }, { log(text: string): void }>().use(middleware)
    expect(middleware).toBeTypeOf("function")
  })
})
