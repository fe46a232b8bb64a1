import { rateLimit } from "@sluice/express"
import cookieParser from "cookie-parser"
import type express from "express"
import type { NextFunction, Request, RequestHandler, Response } from "express"
import { listen } from "./listen.ts"
import type { AdapterUnderTest, AppPlan, RoutePlan } from "./plan.ts"
import { begin, sendInParts } from "./send-in-parts.ts"

/** The part of the Express API that both versions share. */
type Express = Pick<typeof express, "json"> & (() => express.Express)

/** Returns the Express adapter for one version of Express. */
export function onExpress(create: Express): AdapterUnderTest {
  return {
    start: (plan) => listen(appOf(create, plan)),
    decisionOf: (request) => (request as Request).rateLimit,
    headerOf: (request, name) => (request as Request).get(name),
    reply(response, status, body) {
      ;(response as Response).status(status).send(body)
    },
    replyLater(response, status, body) {
      setImmediate(() => (response as Response).status(status).send(body))
    },
    replyInParts: (response, status, body) => sendInParts(response as Response, status, body),
  }
}

function appOf(
  create: Express,
  {
    parsesBodies,
    rewrite,
    setsCookie,
    answersFirst,
    beginsFirst,
    mounts = [],
    routes = [{ path: "/" }],
  }: AppPlan,
) {
  const app = create()
  if (parsesBodies) app.use(create.json(), cookieParser())
  if (setsCookie !== undefined) {
    app.use((_req: Request, res: Response, next: NextFunction) => {
      res.append("Set-Cookie", setsCookie)
      next()
    })
  }
  if (rewrite !== undefined) {
    app.use((req: Request, _res: Response, next: NextFunction) => {
      req.url = rewrite(req.url)
      next()
    })
  }
  if (answersFirst !== undefined) {
    app.use((_req: Request, res: Response, next: NextFunction) => {
      res.status(answersFirst.status ?? 200).send(answersFirst.body)
      next()
    })
  }
  if (beginsFirst !== undefined) {
    app.use((_req: Request, res: Response, next: NextFunction) => {
      begin(res, beginsFirst)
      next()
    })
  }
  for (const options of mounts) app.use(rateLimit(options))
  for (const route of routes) {
    const method = (route.method ?? "GET").toLowerCase() as "get"
    app[method](
      route.path,
      ...(route.mounts ?? []).map((options) => rateLimit(options)),
      ...perRequest(route),
      handler(route),
    )
  }
  if (answersFirst !== undefined) app.use(() => undefined)
  return app
}

function perRequest({ mountPerRequest }: RoutePlan): RequestHandler[] {
  if (mountPerRequest === undefined) return []
  return [(req, res, next) => rateLimit(mountPerRequest())(req, res, next)]
}

function handler({ handle = () => ({}) }: RoutePlan): RequestHandler {
  return (req, res, next) => {
    // Express 4 does not handle promises.
    Promise.resolve(req)
      .then(handle)
      .then(({ status = 200, body = "ok" }) => res.status(status).send(body))
      .catch(next)
  }
}
