import Router from "@koa/router"
import { rateLimit } from "@sluice/koa"
import Koa from "koa"
import { logRequest, type WriteLine } from "./log-request.ts"
import { fromEnvironment, type Surroundings } from "./surroundings.ts"

/**
 * Creates an app with a limit for all routes, and a stricter limit for an expensive route. With `log`, the app writes
 * a line for each request.
 */
export function createApp(surroundings: Surroundings = {}, log?: WriteLine): Koa {
  const app = new Koa()
  app.use((ctx, next) => {
    logRequest(log, ctx.req, ctx.res, () => ctx.state.rateLimit)
    return next()
  })
  app.use(rateLimit({ ...surroundings, limit: 100, window: "1 minute" }))

  const router = new Router()
  router.get("/", (ctx) => {
    ctx.body = { hello: "world", remaining: ctx.state.rateLimit?.remaining }
  })

  // A search counts against both limits, unless the app's limit has refused it.
  const searches = rateLimit({ ...surroundings, name: "search", limit: 3, window: "1 second" })
  router.get("/search", searches, (ctx) => {
    ctx.body = { found: [], remaining: ctx.state.rateLimit?.remaining }
  })
  app.use(router.routes())
  return app
}

if (process.argv[1] === import.meta.filename) {
  const port = Number(process.env.PORT || 3000)
  createApp(fromEnvironment(), console.log)
    .listen(port)
    .once("listening", () => console.log(`Koa listens on http://localhost:${port}`))
}
