import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import { text } from "node:stream/consumers"
import { decisionOn } from "@sluice/core"
import { type Middleware, type Request, rateLimit } from "../../../examples/src/adapter/rate-limit.ts"
import { listen } from "./listen.ts"
import type { AdapterUnderTest, AppPlan, Options, Reply, RoutePlan } from "./plan.ts"
import { begin, sendInParts } from "./send-in-parts.ts"

/** The adapter from the guide, with a small router that represents a framework on Node's own server. */
export const onNodeHttp: AdapterUnderTest = {
  start: (plan) => listen(appOf(plan)),
  decisionOf: decisionOn,
  headerOf: (request, name) => (request as Request).headers[name] as string | undefined,
  reply: (response, status, body) => send(response as ServerResponse, { status, body }),
  replyLater(response, status, body) {
    setImmediate(() => send(response as ServerResponse, { status, body }))
  },
  replyInParts: (response, status, body) => sendInParts(response as ServerResponse, status, body),
}

function appOf({
  parsesBodies,
  rewrite,
  setsCookie,
  answersFirst,
  beginsFirst,
  mounts = [],
  routes = [{ path: "/" }],
}: AppPlan): RequestListener {
  const before: Middleware[] = []
  if (parsesBodies) before.push((req, _res, next) => void parseBody(req).then(() => next(), next))
  if (setsCookie !== undefined) {
    before.push((_req, res, next) => {
      res.appendHeader("Set-Cookie", setsCookie)
      next()
    })
  }
  if (rewrite !== undefined) {
    before.push((req, _res, next) => {
      const { url = "/" } = req
      Object.assign(req, { originalUrl: url, url: rewrite(url) })
      next()
    })
  }
  if (answersFirst !== undefined) {
    before.push((_req, res, next) => {
      send(res, answersFirst)
      next()
    })
  }
  if (beginsFirst !== undefined) {
    before.push((_req, res, next) => {
      begin(res, beginsFirst)
      next()
    })
  }
  const all = [...before, ...mounts.map(mounted), router(routes)]
  return (req, res) => run(all, req, res)
}

function mounted(options: Options): Middleware {
  return rateLimit(options as Parameters<typeof rateLimit>[0])
}

/**
 * Calls the functions one after another. Responds with 500 to an error, and with 404 to a request to which no
 * function responds.
 */
function run([first, ...others]: readonly Middleware[], req: IncomingMessage, res: ServerResponse): void {
  if (first === undefined) {
    if (!res.headersSent) send(res, { status: 404 })
    return
  }
  first(req, res, (error) => {
    if (error === undefined) run(others, req, res)
    else fail(res, error as HttpError)
  })
}

/** An error with a status and headers for the client. */
interface HttpError {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}

function fail(res: ServerResponse, { status = 500, headers = {} }: HttpError): void {
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
  send(res, { status })
}

function router(routes: readonly RoutePlan[]): Middleware {
  const table = routes.map(({ method = "GET", path, mounts = [], mountPerRequest, handle }) => {
    const perRequest: Middleware[] =
      mountPerRequest === undefined ? [] : [(req, res, next) => mounted(mountPerRequest())(req, res, next)]
    const route = { path }
    const pattern = new RegExp(`^${path.replace(/:(\w+)/g, "(?<$1>[^/?]+)")}/?(\\?|$)`, "i")
    return { method, route, pattern, stack: [...mounts.map(mounted), ...perRequest, handler(handle)] }
  })
  return (req, res, next) => {
    const asked = req.method === "HEAD" ? "GET" : req.method
    for (const { method, route, pattern, stack } of table) {
      const found = method === asked ? pattern.exec(req.url ?? "") : null
      if (found === null) continue
      const params = Object.entries(found.groups ?? {}).map(([name, value]) => [
        name,
        decodeURIComponent(value),
      ])
      Object.assign(req, { route, params: Object.fromEntries(params) })
      run(stack, req, res)
      return
    }
    next()
  }
}

function handler(handle: NonNullable<RoutePlan["handle"]> = () => ({})): Middleware {
  return (req, res, next) => {
    Promise.resolve(req)
      .then(handle)
      .then((reply) => send(res, reply))
      .catch(next)
  }
}

function send(res: ServerResponse, { status = 200, body = "ok" }: Reply): void {
  if (res.headersSent) return
  res.statusCode = status
  res.end(body)
}

async function parseBody(req: Request): Promise<void> {
  const json = await text(req)
  if (json !== "") Object.assign(req, { body: JSON.parse(json) })
}
