import Router from "@koa/router"
import type { LimiterOptions } from "@sluice/core"
import { rateLimit } from "@sluice/koa"
import Koa, { type Context } from "koa"
import { sharedStore } from "./shared-store.ts"

/** An app with a limit for all of it and a stricter one for a dear route. Tests and the demo set the options. */
export function createApp(
  options: Pick<LimiterOptions<Context>, "clock" | "service" | "store" | "trustedProxies"> = {},
): Koa {
  const app = new Koa()
  app.use(rateLimit({ ...options, limit: 100, window: "1 minute" }))

  const router = new Router()
  router.get("/", (ctx) => {
    ctx.body = { hello: "world", remaining: ctx.state.rateLimit?.remaining }
  })

  // Only who gets past the app's limit asks for this one; a search takes from both.
  const searches = rateLimit({ ...options, name: "search", limit: 3, window: "1 second" })
  router.get("/search", searches, (ctx) => {
    ctx.body = { found: [], remaining: ctx.state.rateLimit?.remaining }
  })
  app.use(router.routes())
  return app
}

// Started, not imported. TRUSTED_PROXIES is how many proxies stand in front: often 1 in production. With REDIS_URL all
// instances count together.
if (process.argv[1] === import.meta.filename) {
  const port = Number(process.env.PORT ?? 3000)
  const app = createApp({ ...sharedStore(), trustedProxies: Number(process.env.TRUSTED_PROXIES ?? 0) })
  app.listen(port, () => console.log(`Koa listens on http://localhost:${port}`))
}
