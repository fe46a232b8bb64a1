import Router from "@koa/router"
import { rateLimit } from "@sluice/koa"
import Koa, { type Context } from "koa"
import { type Account, accountOf } from "./authentication.ts"
import type { Surroundings } from "./surroundings.ts"

const accountIn = (ctx: Context): Account | undefined => ctx.state.account as Account | undefined

/** `GET /reports`: 10 a minute on the free plan, 100 on the pro plan. */
export function createApp(surroundings: Surroundings = {}): Koa {
  const app = new Koa()
  app.use((ctx, next) => {
    ctx.state.account = accountOf(ctx.get("authorization"))
    return next()
  })

  app.use(
    rateLimit({
      ...surroundings,
      fields: {
        account: (ctx: Context) => accountIn(ctx)?.id,
        // Somebody on no plan is on the free one: where no rule matches, nothing limits. Without an account the
        // address counts, which is what a missing field does by default.
        plan: (ctx: Context) => accountIn(ctx)?.plan ?? "free",
      },
      rules: [
        {
          name: "free",
          field: "account",
          limit: 10,
          window: "1 minute",
          match: { fields: { plan: ["free"] } },
        },
        {
          name: "pro",
          field: "account",
          limit: 100,
          window: "1 minute",
          match: { fields: { plan: ["pro"] } },
        },
      ],
    }),
  )

  const router = new Router()
  router.get("/reports", (ctx) => {
    ctx.body = { plan: accountIn(ctx)?.plan ?? "free" }
  })
  app.use(router.routes())
  return app
}

if (process.argv[1] === import.meta.filename) {
  const port = Number(process.env.PORT ?? 3000)
  createApp().listen(port, () => console.log(`Listens on http://localhost:${port}`))
}
