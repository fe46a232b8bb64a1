import type { AddressInfo } from "node:net"
import { serve } from "@hono/node-server"
import { type RateLimitOptions, rateLimit } from "@sluice/fetch/hono"
import { type Context, Hono } from "hono"
import { validator } from "hono/validator"
import type { AdapterUnderTest, AppPlan, Deviation, Options, Reply, RunningApp } from "./plan.ts"

const NO_RESPONSE = "a handler has no response to write to; onRejected returns what is sent"

const deviations: readonly Deviation[] = [
  ...[
    "sends the response itself",
    "sends the response itself, later",
    "returns false immediately, and sends the response itself in a later turn",
    "returns false in a promise, and sends the response itself in a later turn",
    "begins to send the response itself, and returns undefined immediately",
    "begins to send the response itself, and returns undefined in a promise",
    "may return anything immediately after it has sent the response itself",
    "may return anything in a promise after it has sent the response itself",
    "that throws after it has sent the response itself causes one warning, and the response is kept",
    "is left unchanged",
    "is ended when the request is refused, with one warning",
  ].map((behaviour) => ({ behaviour, reason: NO_RESPONSE })),
  {
    behaviour: "matches the path both before and after the app rewrites it",
    reason: "the URL of a Request cannot change",
  },
  {
    behaviour: "gets the headers of GET and no body if its method is HEAD",
    reason: "Hono answers HEAD with the response to GET without its body, and without its length",
  },
  {
    behaviour: "releases all pipelined requests of a connection that is gone",
    reason: "Hono's signal shows nothing while a response waits behind another one of its connection",
  },
]

/** The middleware for Hono, on Node. */
export const onHono: AdapterUnderTest = {
  start: (plan) => listen(appOf(plan)),
  decisionOf: (request) => (request as Context).var.rateLimit,
  headerOf: (request, name) => (request as Context).req.header(name),
  reply: () => {},
  replyLater: () => {},
  replyInParts: () => {},
  deviations,
}

async function listen(app: Hono): Promise<RunningApp> {
  const server = await new Promise<ReturnType<typeof serve>>((resolve) => {
    const starting = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, () => resolve(starting))
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        if ("closeAllConnections" in server) server.closeAllConnections()
      }),
  }
}

function appOf({ parsesBodies, setsCookie, mounts = [], routes = [{ path: "/" }] }: AppPlan): Hono {
  const app = new Hono()
  // By default, Hono responds to every error with 500, and prints the error.
  app.onError((error, c) => {
    const { status = 500, headers = {} } = error as HttpError
    return c.body("", status as 500, headers)
  })
  if (parsesBodies) app.use(validator("json", (value: object) => value))
  if (setsCookie !== undefined) {
    app.use(async (c, next) => {
      await next()
      c.header("Set-Cookie", setsCookie, { append: true })
    })
  }
  for (const options of mounts) app.use(mounted(options))
  for (const { method = "GET", path, mounts: own = [], mountPerRequest, handle = () => ({}) } of routes) {
    for (const options of own) app.on(method, path, mounted(options))
    if (mountPerRequest !== undefined) app.on(method, path, (c, next) => mounted(mountPerRequest())(c, next))
    app.on(method, path, async (c) => {
      const { status = 200, body = "ok" }: Reply = await handle(c)
      return c.body(body, status as 200)
    })
  }
  return app
}

/** An error with a status and headers for the client. */
interface HttpError {
  readonly status?: number
  readonly headers?: Record<string, string>
}

function mounted(options: Options): ReturnType<typeof rateLimit> {
  return rateLimit(options as unknown as RateLimitOptions)
}
