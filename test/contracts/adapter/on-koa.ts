import { bodyParser } from "@koa/bodyparser"
import Router from "@koa/router"
import { rateLimit } from "@sluice/koa"
import type Koa from "koa"
import type { Context, Middleware } from "koa"
import { listen } from "./listen.ts"
import type { AdapterUnderTest, AppPlan, RoutePlan } from "./plan.ts"
import { begin, sendInParts } from "./send-in-parts.ts"

/** Returns the Koa adapter for one version of Koa. */
export function onKoa(Application: typeof Koa): AdapterUnderTest {
  return {
    start: (plan) => listen(appOf(Application, plan)),
    decisionOf: (request) => (request as Context).state.rateLimit,
    headerOf: (request, name) => (request as Context).get(name) || undefined,
    reply(response, status, body) {
      const ctx = response as Context
      ctx.status = status
      ctx.body = body
    },
    replyLater(response, status, body) {
      const ctx = response as Context
      ctx.respond = false
      setImmediate(() => {
        ctx.res.statusCode = status
        ctx.res.end(body)
      })
    },
    replyInParts(response, status, body) {
      const ctx = response as Context
      ctx.respond = false
      sendInParts(ctx.res, status, body)
    },
  }
}

function appOf(
  Application: typeof Koa,
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
  const app = new Application()
  // Silence Koa, which prints the errors of handlers by default.
  app.on("error", () => undefined)
  if (parsesBodies) app.use(bodyParser())
  if (setsCookie !== undefined) {
    app.use((ctx, next) => {
      ctx.append("Set-Cookie", setsCookie)
      return next()
    })
  }
  if (rewrite !== undefined) {
    app.use((ctx, next) => {
      ctx.url = rewrite(ctx.url)
      return next()
    })
  }
  if (answersFirst !== undefined) {
    app.use(async ({ res }, next) => {
      res.statusCode = answersFirst.status ?? 200
      res.end(answersFirst.body)
      await next()
    })
  }
  if (beginsFirst !== undefined) {
    app.use((ctx, next) => {
      ctx.respond = false
      begin(ctx.res, beginsFirst)
      return next()
    })
  }
  for (const options of mounts) app.use(rateLimit(options))
  const router = new Router()
  for (const route of routes) {
    const mounted = (route.mounts ?? []).map((options) => rateLimit(options))
    router.register(route.path, [route.method ?? "GET"], [...mounted, ...perRequest(route), handler(route)])
  }
  app.use(router.routes())
  return app.callback()
}

function perRequest({ mountPerRequest }: RoutePlan): Middleware[] {
  if (mountPerRequest === undefined) return []
  return [(ctx, next) => rateLimit(mountPerRequest())(ctx, next)]
}

function handler({ handle = () => ({}) }: RoutePlan): Middleware {
  return async (ctx) => {
    const { status = 200, body = "ok" } = await handle(ctx)
    ctx.status = status
    ctx.body = body
  }
}
